"""Videos and prompts with videos, drawn as text, so that a case shows what is pruned and why.

video("aab/ccd|aab/ccc", 0.25)     two frames of two rows and three columns, one character a token

a to e   four ones of which none, one, two, three or all are negative: the cosine of neighbours is 1/2, that of a and e -1
A to E   the same directions, four times as long
x        (2, 0, 0, 0)
0        zeros

All squared lengths are powers of four, and all products and cosines are multiples of 1/2: no arithmetic of any width
rounds them, so two tokens are equally unlike their predecessors exactly or by a half.

pruned("..VVVV.VvvV..ii")          a prompt as `draw` makes it, in which the capitals of a video are kept

Every four positions of a span are a frame of two rows and two columns.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.world.prompts import draw
from reference.items import Item, Modality, Request

DIRECTIONS = {
    "a": (1, 1, 1, 1),
    "b": (1, 1, 1, -1),
    "c": (1, 1, -1, -1),
    "d": (1, -1, -1, -1),
    "e": (-1, -1, -1, -1),
    "x": (2, 0, 0, 0),
    "0": (0, 0, 0, 0),
}
LONGER = 4
MaskOrNone = NDArray[np.bool_] | None


class Video(NamedTuple):
    """Embeddings [frames * height * width, 4], their grid, and the rate at which they are pruned."""

    embeddings: torch.Tensor
    grid: tuple[int, int, int]
    rate: float


class Pruned(NamedTuple):
    """A prompt before pruning, a mask for each item (None: not pruned), and its positions [3, n]."""

    input_ids: NDArray[np.int64]
    items: tuple[Item, ...]
    masks: tuple[MaskOrNone, ...]
    positions: NDArray[np.int64]


def video(drawing: str, rate: float, dtype: torch.dtype = torch.float32) -> Video:
    """The video of a drawing, with frames between bars and rows between slashes."""
    frames = drawing.split("|")
    rows = frames[0].split("/")
    values = [_direction(character) for character in drawing if character not in "|/"]
    return Video(torch.tensor(values, dtype=dtype), (len(frames), len(rows), len(rows[0])), rate)


def pruned(drawing: str, listed: str | None = None) -> Pruned:
    """The prompt of a drawing, of which the capitals and all pictures are kept.

    listed: the letters of the items in the order of the list; by first appearance unless given.
    """
    ids, items = draw(drawing.lower(), listed)
    kept = np.array([character.isupper() for character in drawing], dtype=np.bool_)
    masks = tuple(kept[_places(item)] if item.modality.name == "VIDEO" else None for item in items)
    return Pruned(ids, items, masks, positions(len(ids), items))


def filmed(id: str, drawing: str, videos: Mapping[str, str] | None = None) -> Request:
    """The request of a prompt as `draw` makes it, whose videos show these drawings.

    The feature of every item is what the encoder makes of it; the rows of all others name their letter and their number.
    """
    ids, items = draw(drawing)
    shown = [(videos or {}).get(letter) for letter in dict.fromkeys(filter(str.isalpha, drawing))]
    return Request(
        id=id, input_ids=ids, items=tuple(_with_content(item, film) for item, film in zip(items, shown, strict=True))
    )


class Projector:
    """An encoder for every modality, that gives the features of its items, and counts them.

    finish: what it makes of the list of all rows before it returns it.
    """

    def __init__(self, finish: Callable[[list[torch.Tensor]], Any] = list) -> None:
        self.finish = finish
        self.encoded = 0

    def __call__(self, items: Sequence[Item]) -> Any:
        self.encoded += len(items)
        return self.finish([item.feature.clone() for item in items])


def positions(length: int, items: tuple[Item, ...]) -> NDArray[np.int64]:
    """M-RoPE positions [3, length]: each span begins behind all positions before it, and so does the text after it."""
    starts = {span.first: span for item in items for span in item.spans}
    table: list[tuple[int, int, int]] = []
    while len(table) < length:
        base = max(map(max, table), default=-1) + 1
        span = starts.get(len(table))
        if span is None:
            table.append((base, base, base))
        else:
            table += [(base + k // 4, base + k % 4 // 2, base + k % 2) for k in range(len(span))]
    return np.array(table, dtype=np.int64).reshape(-1, 3).T.copy()


def _places(item: Item) -> list[int]:
    return [place for span in item.spans for place in range(span.first, span.stop)]


def _direction(character: str) -> list[int]:
    scale = LONGER if character.isupper() else 1
    return [scale * value for value in DIRECTIONS[character.lower()]]


def _with_content(item: Item, film: str | None) -> Item:
    count, mark = item.token_count, item.identity[0] if item.identity else 0
    if film is None:
        rows, grid = torch.tensor([[256.0, mark, n, 1.0] for n in range(count)]), (1, 1, count)
    else:
        rows, grid, _ = video(film, 0.0)
    fields = {"video_grid_thw": grid} if item.modality is Modality.VIDEO else {}
    known = sha256(rows.numpy().tobytes()).digest()
    return Item(modality=item.modality, spans=item.spans, feature=rows, fields=fields, identity=known)
