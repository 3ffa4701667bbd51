"""Ranks: one request, and the same of it on every rank.

The ranks of a tensor-parallel group compute every step together. A request comes to the first of them; if the others see it
differently, or one of them not at all, their layers no longer belong together, and the whole group computes nonsense or
waits for ever.

1. The first rank checks and builds, once, and broadcasts: one message a step, empty or not, so that every rank enters
   the same calls whatever has come.
2. Whatever fails there is caught request by request, and becomes a part of the message in the place of what was built.
   Nothing is raised before the broadcast, for the others wait in it.
3. After it, every rank takes its own copy to its own device, which can fail on one of them alone. So all gather who failed
   where, and what failed anywhere fails everywhere, with the words of the lowest rank. It keeps nothing on any device.
4. A request with an item that has no content is refused before anything is built of it, or sent.
5. Where tensor ranks fall into groups for attention, each group is a world of its own: its first rank is who requests come to,
   and no other group sees them.

Source: SGLang 0.5.23, `SchedulerRequestReceiver` and `MultimodalInputs.from_dict`; vLLM 0.33, `MultiprocExecutor`.
Disagreements: SGLang ships features to all ranks, and each makes its inputs of them; its option to build them on the
first rank alone broadcasts pickled objects.
"""

import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from reference.items import Item, Request
from reference.parallel.collectives import Collectives, pack, unpack

Build: TypeAlias = Callable[[Item], torch.Tensor]
Upload: TypeAlias = Callable[[torch.Tensor, int], torch.Tensor]


class RequestFailed(ValueError):
    """A request could not be taken in by every rank; the same on all of them."""


class RankInput(NamedTuple):
    """What a rank has of a request: its ids, int64 [n], and the tensor of each of its items, on its device."""

    input_ids: NDArray[np.int64]
    media: tuple[torch.Tensor, ...]


class Rank:
    """One rank of a tensor-parallel group that falls into so many groups for attention.

    Raises ValueError unless that number divides the size of the group.
    """

    def __init__(self, collectives: Collectives, groups: int = 1) -> None:
        if groups < 1 or collectives.size % groups:
            raise ValueError(f"{collectives.size} ranks do not fall into {groups} groups of equal size")
        self._device = collectives.rank
        self._group = collectives.split(collectives.rank // (collectives.size // groups)) if groups > 1 else collectives

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> dict[str, RankInput | Exception]:
        """Take in what has come to the first rank of the group: the same requests on every rank, by id.

        build: makes a tensor of an item, on the first rank. upload: takes a tensor to a device.
        """
        message = b"" if self._group.rank else self._message(arrivals, build)
        heads, tensors = unpack(self._group.broadcast(message, 0))
        left = iter(tensors)
        taken = {name: self._take(failure, [*islice(left, count)], upload) for name, failure, count in heads}
        failures = self._agree({name: str(one) for name, one in taken.items() if isinstance(one, Exception)})
        return {name: RequestFailed(failures[name]) if name in failures else one for name, one in taken.items()}

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        """All requests: the id of each, what has failed it, and its ids and media."""
        heads, tensors = [], []
        for request in arrivals:
            failure, parts = _parts(request, build)
            heads.append((request.id, failure, len(parts)))
            tensors += parts
        return pack(heads, tensors)

    def _take(self, failure: str | None, tensors: Sequence[torch.Tensor], upload: Upload) -> RankInput | Exception:
        """A request on this rank's device, or what has failed it."""
        if failure is not None:
            return RequestFailed(failure)
        try:
            return RankInput(tensors[0].numpy(), tuple([upload(tensor, self._device) for tensor in tensors[1:]]))
        except Exception as error:
            return RequestFailed(_words(error, f"rank {self._device}"))

    def _agree(self, failures: dict[str, str]) -> dict[str, str]:
        """What failed on any rank, in the words of the lowest one."""
        agreed: dict[str, str] = {}
        for one in self._group.all_gather(json.dumps(failures).encode()):
            agreed = json.loads(one) | agreed
        return agreed


def _parts(request: Request, build: Build) -> tuple[str | None, list[torch.Tensor]]:
    """What has failed a request, or its ids and its media."""
    try:
        for number, item in enumerate(request.items):
            if item.is_empty:
                raise ValueError(f"item {number} has no content")
        media = [item.embedding if item.embedding is not None else build(item) for item in request.items]
        return None, [torch.from_numpy(request.input_ids.copy()), *[one.detach().cpu().contiguous() for one in media]]
    except Exception as error:
        return _words(error, f"request {request.id}"), []


def _words(error: Exception, where: str) -> str:
    return f"{where}: {type(error).__name__}: {error}"
