"""Ways in which ranks that compute together have come to see a request differently, or to wait for one another."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch

from conformance.protocol.parallel import Build, Collectives, Upload
from conformance.quirk import quirk
from reference.items import Request
from reference.parallel.collectives import unpack
from reference.parallel.ranks import Rank, RankInput, RequestFailed

Answers = dict[str, RankInput | Exception]


@quirk(
    "entry-fails-before-the-broadcast",
    replaces="open_rank",
    bugs=("X01",),
    caught_by=("PARALLEL-13", "PARALLEL-15", "PARALLEL-16"),
)
class EntryFailsBeforeTheBroadcast(Rank):
    """What cannot be built is raised on the first rank, and the others wait in the broadcast."""

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        def checked(item: Any) -> torch.Tensor:
            failures.append(item)
            tensor = build(item)
            failures.pop()
            return tensor

        failures: list[Any] = []
        message = super()._message(arrivals, checked)
        if failures or any(item.is_empty for request in arrivals for item in request.items):
            raise ValueError("a medium cannot be built")
        return message


@quirk("failure-of-one-rank", replaces="open_rank", bugs=("X02",), caught_by=("PARALLEL-14", "PARALLEL-15", "PARALLEL-17"))
class FailureOfOneRank(Rank):
    """What fails on one rank ends that rank, and the others go on without it."""

    def _take(self, failure: str | None, tensors: Sequence[torch.Tensor], upload: Upload) -> RankInput | Exception:
        if failure is not None:
            return RequestFailed(failure)
        return RankInput(tensors[0].numpy(), tuple([upload(tensor, self._device) for tensor in tensors[1:]]))


@quirk("failure-not-agreed", replaces="open_rank", bugs=("X02", "L02"), caught_by=("PARALLEL-14", "PARALLEL-17"))
class FailureNotAgreed(Rank):
    """A rank fails the requests that have failed there, and the others compute them."""

    def _agree(self, failures: dict[str, str]) -> dict[str, str]:
        return failures


@quirk(
    "agreed-where-something-failed",
    replaces="open_rank",
    bugs=("X02",),
    caught_by=("PARALLEL-14", "PARALLEL-15", "PARALLEL-17"),
)
class AgreedWhereSomethingFailed(Rank):
    """Only a rank on which something failed comes to where ranks agree about failures."""

    def _agree(self, failures: dict[str, str]) -> dict[str, str]:
        return super()._agree(failures) if failures else failures


@quirk("failure-in-own-words", replaces="open_rank", bugs=("X01", "X02"), caught_by=("PARALLEL-14", "PARALLEL-17"))
class FailureInOwnWords(Rank):
    """Every rank fails the same requests, each with words of its own."""

    def _agree(self, failures: dict[str, str]) -> dict[str, str]:
        return {name: failures.get(name, "failed elsewhere") for name in super()._agree(failures)}


@quirk(
    "one-request-fails-all",
    replaces="open_rank",
    bugs=("L01",),
    caught_by=("PARALLEL-13", "PARALLEL-14", "PARALLEL-16", "PARALLEL-17"),
)
class OneRequestFailsAll(Rank):
    """A request that fails takes all with it that came in the same step."""

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Answers:
        answers = super().step(arrivals, build, upload)
        failed = [one for one in answers.values() if isinstance(one, Exception)]
        return {name: failed[0] if failed else one for name, one in answers.items()}


@quirk(
    "nothing-is-not-said",
    replaces="open_rank",
    bugs=("X01",),
    caught_by=("PARALLEL-12", "PARALLEL-17", "PARALLEL-18", "PARALLEL-20"),
)
class NothingIsNotSaid(Rank):
    """The first rank broadcasts only when something has come, and the others wait for it."""

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Answers:
        return {} if self._group.rank == 0 and not arrivals else super().step(arrivals, build, upload)


@quirk(
    "text-skips-a-collective",
    replaces="open_rank",
    bugs=("X01",),
    caught_by=("PARALLEL-12", "PARALLEL-18"),
)
class TextSkipsACollective(Rank):
    """The first rank waits for the others before it goes on, unless only text has come; they always do."""

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Answers:
        answers = super().step(arrivals, build, upload)
        if self._group.rank or not arrivals or any(one.items for one in arrivals):
            self._group.barrier()
        return answers


@quirk(
    "copies-on-the-senders-device",
    replaces="open_rank",
    bugs=("T05", "I02", "cuda-ipc-rank0-duplication"),
    caught_by=("PARALLEL-15", "PARALLEL-18"),
)
class CopiesOnTheSendersDevice(Rank):
    """Tensors are rebuilt on the device on which they were when they were sent, on every rank."""

    def _take(self, failure: str | None, tensors: Sequence[torch.Tensor], upload: Upload) -> RankInput | Exception:
        return super()._take(failure, tensors, lambda tensor, device: upload(tensor, 0))


@quirk("first-a-copy-on-the-first-device", replaces="open_rank", bugs=("T05", "I02"), caught_by=("PARALLEL-18",))
class FirstACopyOnTheFirstDevice(Rank):
    """Every rank rebuilds a tensor on the sender's device before it takes it to its own."""

    def _take(self, failure: str | None, tensors: Sequence[torch.Tensor], upload: Upload) -> RankInput | Exception:
        return super()._take(failure, tensors, lambda tensor, device: upload(upload(tensor, 0) if device else tensor, device))


@quirk(
    "one-broadcast-for-all-groups",
    replaces="open_rank",
    bugs=("Y03",),
    caught_by=("PARALLEL-17", "PARALLEL-18", "PARALLEL-19", "PARALLEL-20"),
)
class OneBroadcastForAllGroups(Rank):
    """Requests are broadcast from the first rank of all to all, though attention falls into groups."""

    def __init__(self, collectives: Collectives, groups: int = 1) -> None:
        super().__init__(collectives)


@quirk("shared-with-all-groups", replaces="open_rank", bugs=("Y03",), caught_by=("PARALLEL-20",))
class SharedWithAllGroups(Rank):
    """Every rank is sent what comes to any group, and takes of it what concerns its own."""

    def __init__(self, collectives: Collectives, groups: int = 1) -> None:
        super().__init__(collectives, groups)
        self._all = collectives

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        self.message = super()._message(arrivals, build)
        return self.message

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Answers:
        self.message = b""
        answers = super().step(arrivals, build, upload)
        self._all.all_gather(self.message)
        return answers


@quirk("built-twice", replaces="open_rank", bugs=(), caught_by=("PARALLEL-19",))
class BuiltTwice(Rank):
    """A medium is built once to see how large it is, and once more to send it."""

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        super()._message(arrivals, build)
        return super()._message(arrivals, build)


@quirk("nothing-to-build-is-built", replaces="open_rank", bugs=("G09",), caught_by=("PARALLEL-16",))
class NothingToBuildIsBuilt(Rank):
    """An item without content passes the entrance, and meets the processor."""

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        for item in (item for request in arrivals for item in request.items if item.is_empty):
            try:
                build(item)
            except ValueError:
                continue
        return super()._message(arrivals, build)


@quirk("nothing-to-build-is-nothing", replaces="open_rank", bugs=("G09",), caught_by=("PARALLEL-16",))
class NothingToBuildIsNothing(Rank):
    """An item without content passes the entrance, and is left out."""

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        whole = [
            Request(id=one.id, input_ids=one.input_ids, items=tuple(item for item in one.items if not item.is_empty))
            for one in arrivals
        ]
        return super()._message(whole, build)


@quirk("failed-and-kept", replaces="open_rank", bugs=("X02",), caught_by=("PARALLEL-15",))
class FailedAndKept(Rank):
    """What a rank has put on its device of a request that failed elsewhere stays there."""

    def __init__(self, collectives: Collectives, groups: int = 1) -> None:
        super().__init__(collectives, groups)
        self.kept: list[Any] = []

    def _take(self, failure: str | None, tensors: Sequence[torch.Tensor], upload: Upload) -> RankInput | Exception:
        self.kept.append(super()._take(failure, tensors, upload))
        taken: RankInput | Exception = self.kept[-1]
        return taken


@quirk(
    "every-tensor-is-float32",
    replaces="open_rank",
    bugs=(),
    caught_by=(
        "PARALLEL-11",
        "PARALLEL-12",
        "PARALLEL-13",
        "PARALLEL-14",
        "PARALLEL-16",
        "PARALLEL-17",
        "PARALLEL-18",
    ),
)
class EveryTensorIsFloat32(Rank):
    """Tensors are sent as the numbers that numpy knows, and bfloat16, int64 and bool come out as float32."""

    def _message(self, arrivals: Sequence[Request], build: Build) -> bytes:
        return super()._message(arrivals, lambda item: build(item).to(torch.float32))


@quirk("sent-to-each-rank-in-turn", replaces="open_rank", bugs=(), caught_by=("PARALLEL-20",))
class SentToEachRankInTurn(Rank):
    """What one broadcast would bring to all ranks is sent once for each of them, and reaches all of them each time."""

    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Answers:
        message = b"" if self._group.rank else self._message(arrivals, build)
        for _ in range(self._group.size):
            message = self._group.broadcast(message, 0)
        heads, tensors = unpack(message)
        left = iter(tensors)
        taken = {name: self._take(failure, [*islice(left, count)], upload) for name, failure, count in heads}
        failures = self._agree({name: str(one) for name, one in taken.items() if isinstance(one, Exception)})
        return {name: RequestFailed(failures[name]) if name in failures else one for name, one in taken.items()}
