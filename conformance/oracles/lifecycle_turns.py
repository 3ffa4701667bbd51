"""What is obviously right about turns: the whole conversation as one list of positions, each with its token and its owner."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.oracles import placeholders, positions
from conformance.world.mrope import Medium, Script, write
from conformance.world.prompts import draw
from reference.items import Item, MropeLayout, Request, Span

BOS = 1
"""The id that `<` stands for in a drawing."""


class Join(NamedTuple):
    """What `join_turn` is asked."""

    history: Request
    reply: NDArray[np.int64]
    turn: Request
    keep: int | None
    bos: int | None

    @property
    def is_stripped(self) -> bool:
        """Whether the turn loses its beginning-of-sequence token."""
        kept = len(self.history.input_ids) + len(self.reply) if self.keep is None else self.keep
        return self.bos is not None and kept > 0 and self.turn.input_ids[:1].tolist() == [self.bos]


class Tables(NamedTuple):
    """What `join_positions` and `join_modalities` are asked, and the right answer."""

    previous: NDArray[Any]
    length: int
    turn: NDArray[Any]
    is_stripped: bool
    expected: NDArray[Any]


class Padding(NamedTuple):
    """What `join_padded` is asked, and the right answer."""

    previous: NDArray[np.int64]
    turn_ids: NDArray[np.int64]
    items: tuple[Item, ...]
    made: NDArray[np.int64] | None
    expected: NDArray[np.int64]


def join(history: str, reply: str, turn: str, keep: int | None = None, bos: int | None = None) -> Join:
    """The question in drawings; see `conformance.world.prompts`."""
    return Join(drawn("history", history), draw(reply).input_ids, drawn("turn", turn), keep, bos)


def drawn(id: str, drawing: str) -> Request:
    """A drawing as a request."""
    return Request(id=id, input_ids=draw(drawing).input_ids, items=draw(drawing).items)


def whole(case: Join) -> Request:
    """The conversation as one prompt: position by position what is kept, then the turn; items stand where theirs are."""
    past = [*_cells(case.history, 0), *((int(token), None) for token in case.reply)]
    cells = past[: case.keep] + _cells(case.turn, 1)[int(case.is_stripped) :]
    items = []
    for source, request in enumerate((case.history, case.turn)):
        for number, item in enumerate(request.items):
            places = [[p for p, cell in enumerate(cells) if cell[1] == (source, number, s)] for s in range(len(item.spans))]
            found = tuple(Span(min(place), max(place)) for place in places if place)
            items += [_placed(item, found)] if found else []
    return Request(id="turn", input_ids=np.array([token for token, _ in cells], dtype=np.int64), items=tuple(items))


def written(layout: MropeLayout, history: list[int | Medium], reply: int, turn: list[int | Medium], **chosen: int) -> Join:
    """The question in the words of `conformance.world.mrope`. chosen: `keep`, and `bos`, the turn's first id."""
    before, after = write(layout, *history), write(layout, *turn)
    requests = (Request(id=name, input_ids=one.input_ids, items=one.items) for name, one in (("h", before), ("turn", after)))
    first, last = requests
    bos = int(after.input_ids[0]) if "bos" in chosen else None
    return Join(first, np.full(reply, 20, dtype=np.int64), last, chosen.get("keep"), bos)


def tables(layout: MropeLayout, case: Join, covered: int | None = None) -> Tables:
    """Positions to join. covered: how many positions of the history its table has; those of its prompt unless given."""
    past = Join(case.history, case.reply, Request(id="turn", input_ids=np.empty(0, dtype=np.int64)), None, None)
    known = _triples(layout, whole(past))[:, : len(case.history.input_ids) if covered is None else covered]
    length = whole(past).input_ids.size if case.keep is None else case.keep
    return Tables(known, length, _triples(layout, case.turn), case.is_stripped, _triples(layout, whole(case)))


def modalities(case: Join, covered: int | None = None) -> Tables:
    """Modalities to join, as `tables`."""
    known = _modalities(case.history)[:covered]
    past = len(case.history.input_ids) + len(case.reply)
    length = past if case.keep is None else case.keep
    return Tables(known, length, _modalities(case.turn), case.is_stripped, _modalities(whole(case)))


def padding(case: Join, made: str | None = None) -> Padding:
    """Padded ids to join. made: a drawing of what was padded earlier."""
    joined, kept = whole(case), len(case.history.input_ids) + len(case.reply)
    padded = placeholders.padded(joined.input_ids, joined.items)
    items = tuple(item for item in joined.items if item.spans[0].first >= kept)
    earlier = None if made is None else placeholders.padded(*draw(made))
    return Padding(padded[:kept], joined.input_ids[kept:], items, earlier, padded)


def _cells(request: Request, source: int) -> list[tuple[int, tuple[int, int, int] | None]]:
    owners: dict[int, tuple[int, int, int]] = {}
    for number, item in enumerate(request.items):
        for s, span in enumerate(item.spans):
            owners |= dict.fromkeys(range(span.first, span.last + 1), (source, number, s))
    return [(int(token), owners.get(position)) for position, token in enumerate(request.input_ids)]


def _placed(item: Item, spans: tuple[Span, ...]) -> Item:
    return Item(modality=item.modality, spans=spans, identity=item.identity, fields=item.fields)


def _triples(layout: MropeLayout, request: Request) -> NDArray[np.int64]:
    return positions.triples(Script(request.input_ids, request.items, layout))


def _modalities(request: Request) -> NDArray[np.int8]:
    return np.array(placeholders.modalities(len(request.input_ids), request.items), dtype=np.int8)
