"""What ENCODING is tried on."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from conformance.cases import Exact
from conformance.oracles import encoding as oracle
from conformance.oracles.encoding import Batch
from conformance.world.doubles import Finish, audio, encoded, image, precomputed, request, video, whole
from reference.items import Chunk, Item, Request, Span

ONE = (Span(2, 6),)
TWO = (Span(2, 6), Span(10, 14))
FRAMES = (Span(0, 1), Span(3, 4), Span(6, 7), Span(9, 9))

CHUNKS = {
    "all": (TWO, Chunk(0, 20)),
    "none": (TWO, Chunk(0, 0)),
    "empty-inside-a-span": (TWO, Chunk(4, 0)),
    "before-the-span": (ONE, Chunk(0, 2)),
    "up-to-the-first-position": (ONE, Chunk(0, 3)),
    "up-to-the-last-position": (ONE, Chunk(0, 7)),
    "up-to-the-last-but-one": (ONE, Chunk(0, 6)),
    "from-the-last-position": (ONE, Chunk(6, 4)),
    "after-the-span": (ONE, Chunk(7, 4)),
    "inside-the-span": (ONE, Chunk(3, 2)),
    "exactly-the-span": (ONE, Chunk(2, 5)),
    "between-two-spans": (TWO, Chunk(7, 3)),
    "end-of-one-to-start-of-next": (TWO, Chunk(6, 5)),
    "second-span-only": (TWO, Chunk(12, 8)),
    "several-frames": (FRAMES, Chunk(1, 6)),
    "no-spans": ((), Chunk(0, 9)),
}
COUNTS = {name: Exact(case, len(oracle.rows_in_chunk(*case))) for name, case in CHUNKS.items()}
SLICES = {name: Exact(case, oracle.rows_in_chunk(*case)) for name, case in CHUNKS.items() if case[0]}

CUTS = {
    "one-chunk": (TWO, [15]),
    "single-positions": (TWO, [1] * 15),
    "at-the-edges": (TWO, [2, 5, 3, 5]),
    "inside-both-spans": (TWO, [4, 8, 3]),
    "with-empty-chunks": (TWO, [0, 4, 0, 0, 11, 0]),
    "frames": (FRAMES, [1, 3, 3, 3]),
}


class Rows(NamedTuple):
    """An embedding of `rows` rows for an item of these spans."""

    spans: tuple[Span, ...]
    rows: int


WRONG_ROWS = {"one-short": Rows(ONE, 4), "one-long": Rows(ONE, 6), "none": Rows(TWO, 0), "one-span-only": Rows(TWO, 5)}

FOLLOWED = request("followed", 12, image(1, (1, 4)), image(2, (6, 9)))
MIXED = request("mixed", 20, image(1, (0, 3)), image(4, (5, 8)), video(2, (10, 11), (14, 15)), audio(3, (17, 19)))
WOVEN = request("woven", 12, video(1, (0, 1), (4, 5), (8, 9)), audio(2, (2, 3), (6, 7), (10, 11)))

BATCHES: dict[str, Batch] = {
    "one-picture": [whole(request("one", 9, image(1, (2, 6))))],
    "nothing-but-a-picture": [whole(request("bare", 4, image(1, (0, 3))))],
    "the-middle-of-a-picture": [(request("middle", 12, image(1, (2, 9))), Chunk(4, 3))],
    "the-rest-of-a-picture": [(request("rest", 12, image(1, (2, 9))), Chunk(5, 7))],
    "the-last-row-of-a-picture": [(request("last", 12, image(1, (2, 9))), Chunk(9, 3))],
    "end-of-one-start-of-next": [(FOLLOWED, Chunk(4, 3))],
    "all-modalities": [whole(MIXED)],
    "some-frames": [(MIXED, Chunk(11, 4))],
    "each-prompt-its-picture": [whole(request(f"prompt-{n}", 8, image(n, (1, 5)))) for n in (5, 6, 7)],
    "pictures-of-many-sizes": [whole(request(f"size-{n}", 12, image(n, (1, n)))) for n in (5, 1, 9)],
    "full-part-full": [
        whole(request("full", 10, image(1, (0, 7)))),
        (request("part", 10, image(2, (0, 7))), Chunk(3, 4)),
        whole(request("also-full", 10, image(3, (0, 7)))),
    ],
    "one-picture-twice": [whole(request("twice", 12, image(1, (1, 4)), image(1, (6, 9))))],
    "one-picture-in-two-prompts": [
        whole(request("first", 9, image(1, (1, 4)))),
        (request("second", 9, image(2, (0, 1)), image(1, (5, 8))), Chunk(1, 7)),
    ],
}

SILENT: dict[str, Batch] = {
    "a-prompt-of-text": [whole(request("text", 6))],
    "text-among-pictures": [
        whole(request("before", 8, image(1, (1, 5)))),
        whole(request("text", 8)),
        whole(request("after", 8, image(2, (1, 5)))),
    ],
    "text-first": [whole(request("text", 5)), whole(request("picture", 8, image(1, (1, 5))))],
    "a-chunk-between-two-pictures": [(FOLLOWED, Chunk(5, 1)), whole(request("other", 8, image(3, (1, 5))))],
    "an-empty-chunk": [(FOLLOWED, Chunk(3, 0))],
    "an-empty-batch": [],
}

OUTSIDE: dict[str, Batch] = {
    "next-begins-right-after": [(FOLLOWED, Chunk(0, 6))],
    "last-ended-right-before": [(FOLLOWED, Chunk(5, 7))],
    "nothing-in-the-chunk": [(FOLLOWED, Chunk(5, 1))],
    "an-empty-chunk": [(FOLLOWED, Chunk(2, 0))],
    "between-two-frames": [(MIXED, Chunk(12, 2))],
    "everything-is-done": [(MIXED, Chunk(20, 0))],
}

DUPLICATES: dict[str, Batch] = {
    "in-one-prompt": BATCHES["one-picture-twice"],
    "in-two-prompts": BATCHES["one-picture-in-two-prompts"],
    "in-every-modality": [whole(MIXED), (MIXED, Chunk(2, 16))],
    "in-two-chunks": [(FOLLOWED, Chunk(0, 3)), (FOLLOWED, Chunk(3, 4))],
}

SEVERAL: dict[str, Batch] = {
    "in-one-prompt": [whole(FOLLOWED)],
    "in-several-prompts": BATCHES["each-prompt-its-picture"],
    "some-of-them-twice": [whole(request("a", 9, image(7, (0, 3)))), whole(FOLLOWED), whole(request("b", 9, image(7, (1, 4))))],
    "of-every-modality": [whole(MIXED), whole(request("sound", 8, audio(1, (1, 2)), audio(2, (4, 7))))],
}

LENGTHS: dict[str, Batch] = {
    "four-and-six": [whole(request("four", 9, image(1, (2, 5)))), whole(request("six", 9, image(1, (0, 5))))],
    "six-and-four": [whole(request("six", 9, image(1, (0, 5)))), whole(request("four", 9, image(1, (2, 5))))],
    "in-one-prompt": [whole(request("both", 12, image(1, (0, 2)), image(1, (4, 9))))],
    "one-row-apart": [whole(request("short", 20, video(1, (2, 17)))), whole(request("long", 20, video(1, (2, 18))))],
}


class Chunked(NamedTuple):
    """A request, computed in chunks of these lengths."""

    request: Request
    lengths: tuple[int, ...]

    @property
    def chunks(self) -> list[Chunk]:
        return [Chunk(sum(self.lengths[:number]), length) for number, length in enumerate(self.lengths)]


CHUNKINGS = {
    "single-positions": Chunked(MIXED, (1,) * 20),
    "pairs": Chunked(WOVEN, (2,) * 6),
    "at-the-edges": Chunked(MIXED, (4, 1, 4, 1, 2, 2, 2, 1, 3)),
    "one-off-the-edges": Chunked(MIXED, (3, 3, 3, 4, 6, 1)),
    "with-empty-chunks": Chunked(FOLLOWED, (0, 3, 0, 9, 0)),
    "one-off-in-the-frames": Chunked(WOVEN, (3, 6, 3)),
}

ORDERS: dict[str, Batch] = {
    "picture-then-video": [whole(request("iv", 10, image(1, (0, 3)), video(2, (5, 8))))],
    "video-then-picture": [whole(request("vi", 10, video(1, (0, 3)), image(2, (5, 8))))],
    "picture-video-picture": [whole(request("ivi", 14, image(1, (0, 3)), video(2, (5, 8)), image(3, (10, 13))))],
    "listed-backwards": [whole(request("back", 10, image(2, (5, 8)), image(1, (0, 3))))],
    "listed-by-modality": [whole(request("sorted", 14, image(1, (0, 3)), image(3, (10, 13)), video(2, (5, 8))))],
    "frames-around-sound": [whole(WOVEN)],
    "frames-around-sound-in-part": [(WOVEN, Chunk(3, 6))],
}

READY: dict[str, Batch] = {
    "alone": [whole(request("ready", 8, precomputed(image(1, (1, 5)))))],
    "in-part": [(request("part", 9, precomputed(image(1, (1, 7)))), Chunk(4, 3))],
    "beside-a-raw-one": [whole(request("both", 12, image(2, (0, 3)), precomputed(image(1, (6, 9)))))],
    "raw-in-another-prompt": [
        whole(request("raw", 8, image(2, (1, 5)))),
        whole(request("ready", 8, precomputed(image(1, (1, 5))))),
    ],
    "other-modality": [whole(request("mix", 12, video(2, (0, 1), (3, 4)), precomputed(audio(1, (6, 9)))))],
}


def beside(*items: Item) -> Batch:
    """A prompt with these items, and healthy prompts around it, all with precomputed embeddings."""
    return [
        whole(request("before", 14, precomputed(image(8, (1, 5))))),
        whole(request("bad", 14, *items)),
        whole(request("after", 14, precomputed(image(9, (1, 5))))),
    ]


WRONG_READY: dict[str, Batch] = {
    "one-short": beside(precomputed(image(1, (1, 5)), torch.ones(4, 5))),
    "one-long": beside(precomputed(image(1, (1, 5)), torch.ones(6, 5))),
    "no-rows": beside(precomputed(image(1, (1, 5)), torch.ones(0, 5))),
    "one-dimension": beside(precomputed(image(1, (1, 5)), torch.ones(5))),
    "narrower-than-its-neighbour": beside(precomputed(image(1, (1, 5)), torch.ones(5, 3)), precomputed(image(2, (8, 12)))),
}


def sparse(indices: list[list[int]], width: int = 5) -> torch.Tensor:
    """A sparse tensor of ones that states the shape [5, width]; nobody has looked at its indices."""
    return torch.sparse_coo_tensor(torch.tensor(indices), torch.ones(len(indices[0])), (5, width), check_invariants=False)


DENSE = encoded(image(1, (1, 5)))
TWICE = torch.cat([DENSE - 1, torch.ones(5, 5)], dim=1).reshape(-1)
"""Each value in two parts that are found one after the other in a row."""

SPARSE: dict[str, Batch] = {
    "coordinates": beside(precomputed(image(1, (1, 5)), DENSE.to_sparse())),
    "values-in-two-parts": beside(
        precomputed(
            image(1, (1, 5)),
            torch.sparse_coo_tensor(
                torch.tensor([[row for row in range(5) for _ in range(10)], [*range(5), *range(5)] * 5]),
                TWICE,
                (5, 5),
                check_invariants=True,
            ),
        )
    ),
    "nothing-but-zeros": beside(precomputed(image(1, (1, 5)), torch.zeros(5, 5).to_sparse())),
}
WRONG_SPARSE: dict[str, Batch] = {
    "a-row-before-the-first": beside(precomputed(image(1, (1, 5)), sparse([[-1], [0]]))),
    "a-row-behind-the-last": beside(precomputed(image(1, (1, 5)), sparse([[5], [0]]))),
    "a-column-before-the-first": beside(precomputed(image(1, (1, 5)), sparse([[0], [-1]]))),
    "a-column-behind-the-last": beside(precomputed(image(1, (1, 5)), sparse([[0], [5]]))),
    "states-16-pebibytes": beside(precomputed(image(1, (1, 5)), sparse([[0], [0]], 1 << 50))),
}

FAULTY: Batch = [
    whole(request("bad", 14, image(1, (1, 5)))),
    whole(request("good", 14, image(2, (1, 5)))),
    whole(request("mixed", 14, image(1, (1, 5)), video(3, (8, 12)))),
    whole(request("video", 14, video(3, (1, 5)))),
]
"""Image 1 is the one at fault."""


class Fault(NamedTuple):
    """What goes wrong with a list of right rows.

    contained: whether it is known which item is at fault; else every item of the call is suspect.
    """

    finish: Finish
    contained: bool = False

    @property
    def failing(self) -> set[str]:
        return {"bad", "mixed"}

    @property
    def served(self) -> set[str]:
        return {"video", "good"} if self.contained else {"video"}


def at_fault(change: Callable[[torch.Tensor], list[torch.Tensor]]) -> Finish:
    """The rows of image 1 become these, in a list one longer or shorter where they are several or none."""
    return lambda rows: [part for one in rows for part in (change(one) if one[0, 1] == 1 else [one])]


def too_short(rows: torch.Tensor) -> list[torch.Tensor]:
    return [rows[:-1]]


def too_long(rows: torch.Tensor) -> list[torch.Tensor]:
    return [torch.cat([rows[:1], rows])]


FAULTS = {
    "one-row-short": Fault(at_fault(too_short), contained=True),
    "one-row-long": Fault(at_fault(too_long), contained=True),
    "no-rows": Fault(at_fault(lambda rows: [rows[:0]]), contained=True),
    "rows-of-numbers": Fault(at_fault(lambda rows: [rows[:, 0]]), contained=True),
    "result-missing": Fault(at_fault(lambda rows: [])),
    "result-too-many": Fault(at_fault(lambda rows: [rows, rows])),
    "empty-list": Fault(lambda rows: []),
    "nothing": Fault(lambda rows: None),
    "joined-and-short": Fault(lambda rows: torch.cat(at_fault(too_short)(rows))),
    "joined-and-long": Fault(lambda rows: torch.cat(at_fault(too_long)(rows))),
    "joined-in-one-dimension": Fault(lambda rows: torch.cat(rows).flatten()),
}


class Again(NamedTuple):
    """Two batches that share a cache."""

    first: Batch
    second: Batch


REPEATED = {
    "the-same-again": Again([whole(MIXED)], [whole(MIXED)]),
    "the-next-chunk": Again([(FOLLOWED, Chunk(0, 3))], [(FOLLOWED, Chunk(3, 3))]),
    "the-first-is-known": Again([whole(request("a", 9, image(1, (0, 3))))], [whole(FOLLOWED)]),
    "the-second-is-known": Again([whole(request("a", 9, image(2, (0, 3))))], [whole(FOLLOWED)]),
    "one-of-several-modalities": Again([whole(request("a", 9, audio(3, (0, 2))))], [whole(MIXED)]),
    "nothing-is-known": Again([whole(request("a", 9, image(9, (0, 3))))], [whole(FOLLOWED)]),
    "another-prompt": Again([whole(FOLLOWED)], [whole(request("b", 30, image(2, (5, 8)), image(1, (20, 23))))]),
}
