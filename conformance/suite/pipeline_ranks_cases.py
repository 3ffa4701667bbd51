"""Cases for PIPELINE_RANKS: a drawn prompt, a chunk of it, and a model that is split by layers."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch

from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.protocol.pipeline_ranks import RankInput, Received
from conformance.suite.merging_feeds import HIDDEN, Feed, chunk_ids, feed
from conformance.world.prompts import Prompt
from reference.items import Chunk, Item, Modality, Request


class Split(NamedTuple):
    """A chunk, the layers of each rank, and the layer that takes each level of deepstack."""

    feed: Feed
    ranks: tuple[range, ...]
    level_layers: tuple[int, ...]

    @property
    def levels(self) -> torch.Tensor:
        """The rows of all levels, at media of the chunk only: [levels, media positions, hidden]."""
        rows = self.feed.rows.to(self.feed.table.dtype)
        return rows[:, HIDDEN:].reshape(len(rows), len(self.level_layers), HIDDEN).transpose(0, 1)


class Tower:
    """Encoders that give the rows of a prompt, and remember which items they were given."""

    def __init__(self, case: Split) -> None:
        whole = feed(case.feed.prompt, levels=len(case.level_layers), rows=case.feed.rows.dtype)
        self._rows = dict(zip(whole.media, whole.rows, strict=True))
        self.encoded: list[Item] = []

    def __call__(self, items: Sequence[Item]) -> list[torch.Tensor]:
        self.encoded += items
        positions = [[place for span in item.spans for place in range(span.first, span.stop)] for item in items]
        return [torch.stack([self._rows[place] for place in places]) for places in positions]

    def encoders(self) -> Mapping[Modality, "Tower"]:
        """This tower for every modality."""
        return dict.fromkeys(Modality, self)


def split(
    prompt: str | Prompt,
    lengths: tuple[int, ...],
    level_layers: tuple[int, ...],
    chunk: Chunk | None = None,
    table: torch.dtype = torch.float32,
) -> Split:
    """A split; lengths: how many layers each rank has."""
    ranks = tuple(range(*bounds) for bounds in pairwise(accumulate(lengths, initial=0)))
    return Split(feed(prompt, chunk, levels=len(level_layers), table=table), ranks, level_layers)


def ask(engine: Engine, case: Split, rank: int, received: Received | None = None, tower: Tower | None = None) -> RankInput:
    """What the engine feeds one rank; all tensors have a row for each position of the chunk."""
    prompt, chunk = case.feed.prompt, case.feed.chunk
    ids = chunk_ids(engine, prompt, Chunk(0, len(prompt.input_ids)))
    request = Request(id="r", input_ids=ids, items=prompt.items)
    table = case.feed.table.clone() if rank == 0 else None
    encoders = (tower or Tower(case)).encoders()
    observed: RankInput = engine.rank_input(rank, case.ranks, case.level_layers, request, chunk, encoders, table, received)
    for name, rows in [("the hidden states", observed.hidden_states), *observed.deepstack.items(), *observed.handed_on.items()]:
        what = name if isinstance(name, str) else f"the deepstack rows of layer {name}"
        equal(list(rows.shape), [chunk.length, HIDDEN], f"the shape of {what} on rank {rank}", where="axis {}".format)
    return observed


def made(observed: RankInput) -> torch.Tensor:
    """What the layers of a rank make of its hidden states, here: something else."""
    return observed.hidden_states + 1


def along_the_pipeline(engine: Engine, case: Split, tower: Tower | None = None) -> list[RankInput]:
    """What each rank is fed, one after another."""
    inputs = [ask(engine, case, 0, tower=tower)]
    for rank in range(1, len(case.ranks)):
        inputs.append(ask(engine, case, rank, Received(made(inputs[-1]), inputs[-1].handed_on), tower))
    return inputs


def served(engine: Engine, case: Split) -> list[tuple[range, RankInput]]:
    """The layers and the input of each rank, to be checked in a loop; nothing where the engine refuses the split, as its
    trait says."""
    if engine.traits.deepstack_ranks == "first" and {*case.level_layers} - {*case.ranks[0]}:
        refuses(lambda: along_the_pipeline(engine, case), f"levels on the layers {case.level_layers} of {case.ranks}")
        return []
    return [*zip(case.ranks, along_the_pipeline(engine, case), strict=True)]


def meets(item: Item, chunk: Chunk) -> bool:
    """Whether an item has a position in the chunk."""
    return any(chunk.prefix <= place < chunk.stop for span in item.spans for place in range(span.first, span.stop))
