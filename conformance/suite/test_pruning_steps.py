"""PRUNING: the ids and rows of one step of a batch in which videos are pruned."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.compare import ACCIDENTS, Mismatch, equal, holds
from conformance.engine import Engine
from conformance.oracles import pruning as oracle
from conformance.requirement import SHOULD, requirement
from conformance.world.videos import Projector, filmed
from reference.items import Chunk, Modality, Request

Served: TypeAlias = tuple[NDArray[np.int64], torch.Tensor] | Exception

MOVING, CUT, STILL = "aaaa|aaae|aaaa", "abcd|eeee|eeee", "aaaa|aaaa|aaaa"
CAPACITY_BYTES = 1 << 20


class Step(NamedTuple):
    """Requests, each with its chunk of the pruned prompt, and the rate."""

    batch: tuple[tuple[Request, Chunk], ...]
    rate: float = 0.5


def whole(*requests: Request, rate: float = 0.5) -> Step:
    """Every request in one chunk."""
    return Step(tuple((one, Chunk(0, oracle.length(one, rate))) for one in requests), rate)


ONE_SPAN = filmed("one-span", ".vvvvvvvvvvvv..", {"v": MOVING})
FRAMES = filmed("frames", "..vvvv.vvvv.vvvv..", {"v": CUT})
EMPTIED = filmed("emptied", ".vvvv.vvvv.vvvv.", {"v": "aaaa|aaaa|eeee"})
GALLERY = filmed("gallery", "iii.vvvv.vvvv.vvvv.jj.aaa", {"v": MOVING})
CINEMA = filmed("cinema", ".vvvv.vvvv.vvvv..wwww.wwww.i", {"v": STILL, "w": "abcd|abce"})
LETTER = filmed("letter", ".......")
PICTURE = filmed("picture", ".iiii.jj.")
PROMPTS = {one.id: one for one in (ONE_SPAN, FRAMES, EMPTIED, GALLERY, CINEMA)}
STEPS = {name: whole(one) for name, one in PROMPTS.items()} | {
    "two-videos-in-a-batch": whole(FRAMES, ONE_SPAN),
    "beside-text-and-pictures": whole(LETTER, FRAMES, PICTURE),
    "one-video-in-two-prompts": whole(FRAMES, filmed("again", ".vvvvvvvvvvvv", {"v": CUT})),
    "nothing-to-prune": whole(LETTER, PICTURE),
    "one-frame": whole(filmed("one-frame", ".vvvv.", {"v": "abcd"})),
    "within-a-video": Step(((FRAMES, Chunk(4, 6)), (ONE_SPAN, Chunk(2, 3)))),
    "behind-a-video": Step(((GALLERY, Chunk(13, 5)), (CINEMA, Chunk(0, 4)))),
    "text-between-frames-alone": Step(((EMPTIED, Chunk(5, 1)), (GALLERY, Chunk(3, 1)))),
}


@requirement(
    "PRUNING-19",
    needs="encode_pruned",
    cases=STEPS,
    bugs=("evs-qwen3-interleaved", "evs-extra-channels-not-stripped", "evs-video-then-image-mrope"),
)
def test_every_request_gets_its_own_ids_and_rows(engine: Engine, case: Step) -> None:
    """A request MUST get the ids of its chunk, with as many placeholders in each frame as the mask kept, and the rows of
    just these tokens in the encoder's width, whatever else is in the batch."""
    observed = engine.encode_pruned(case.batch, dict.fromkeys(Modality, Projector()), None, case.rate)
    equal(len(observed), len(case.batch), "the number of answers to a batch")
    for answer, (request, chunk) in zip(observed, case.batch, strict=True):
        is_right(answer, request, chunk, case.rate)


@requirement(
    "PRUNING-20",
    needs=("encode_pruned", "open_encoder_cache"),
    cases={f"{name}-by-{size}": (one, size) for name, one in PROMPTS.items() for size in (1, 3, 7)},
    bugs=("V03", "evs-extra-channels-not-stripped"),
)
def test_pruned_chunks_make_the_whole(engine: Engine, case: tuple[Request, int]) -> None:
    """However a pruned prompt is cut into steps, each MUST get its ids and rows, where later ones find the video cached."""
    request, size = case
    cache = engine.open_encoder_cache(CAPACITY_BYTES)
    for first in range(0, oracle.length(request, 0.5), size):
        chunk = Chunk(first, min(size, oracle.length(request, 0.5) - first))
        (observed,) = engine.encode_pruned([(request, chunk)], dict.fromkeys(Modality, Projector()), cache, 0.5)
        is_right(observed, request, chunk, 0.5)


@requirement(
    "PRUNING-21",
    needs=("encode_pruned", "open_encoder_cache"),
    cases={
        "once-more": (FRAMES, FRAMES),
        "in-one-span-after-frames": (FRAMES, filmed("again", ".vvvvvvvvvvvv.", {"v": CUT})),
        "in-frames-after-one-span": (ONE_SPAN, filmed("again", "...vvvv.vvvv..vvvv", {"v": MOVING})),
        "beside-another": (GALLERY, filmed("again", ".vvvv.vvvv.vvvv.wwww.wwww", {"v": MOVING, "w": "abcd|eeee"})),
    },
    bugs=("V03",),
)
def test_a_cached_video_is_laid_out_like_a_new_one(engine: Engine, case: tuple[Request, Request]) -> None:
    """A video that another request brought into the cache MUST be laid out by its own frames, as if it were new."""
    cache = engine.open_encoder_cache(CAPACITY_BYTES)
    for request in case:
        (entry,) = whole(request).batch
        (observed,) = engine.encode_pruned([entry], dict.fromkeys(Modality, Projector()), cache, 0.5)
        is_right(observed, *entry, 0.5)


@requirement(
    "PRUNING-22",
    needs=("encode_pruned", "open_encoder_cache"),
    level=SHOULD,
    cases=PROMPTS,
    bugs=("V03",),
)
def test_a_cached_video_is_not_encoded_again(engine: Engine, case: Request) -> None:
    """A video SHOULD be encoded once for all steps of its prompt, where the cache has room."""
    cache, encoder = engine.open_encoder_cache(CAPACITY_BYTES), Projector()
    for first in range(oracle.length(case, 0.5)):
        engine.encode_pruned([(case, Chunk(first, 1))], dict.fromkeys(Modality, encoder), cache, 0.5)
    equal(encoder.encoded, len(case.items), "the number of items that were encoded")


@requirement("PRUNING-23", needs=("encode_pruned", "encode"), cases=PROMPTS | {"letter": LETTER})
def test_rate_0_is_no_pruning(engine: Engine, case: Request) -> None:
    """At the rate 0 a step MUST have the ids of the prompt and the rows that it has without pruning."""
    chunk = Chunk(0, len(case.input_ids))
    (observed,) = engine.encode_pruned([(case, chunk)], dict.fromkeys(Modality, Projector()), None, 0.0)
    ids, rows = served(observed, case)
    (plain,) = engine.encode([(case, chunk)], dict.fromkeys(Modality, Projector()), None)
    equal(ids, case.input_ids, "the ids")
    equal(rows, plain, "the rows", where="row {}".format)


@requirement(
    "PRUNING-24",
    needs="encode_pruned",
    cases={
        "rows-missing": (FRAMES, lambda rows: [part[:-1] for part in rows]),
        "one-row-too-many": (ONE_SPAN, lambda rows: [torch.cat([part, part[:1]]) for part in rows]),
        "already-pruned": (FRAMES, lambda rows: [part[:6] for part in rows]),
        "an-encoder-that-raises": (CINEMA, lambda rows: rows[99]),
    },
    bugs=("evs-video-then-image-mrope",),
)
def test_a_video_without_its_rows_fails_its_request_alone(
    engine: Engine, case: tuple[Request, Callable[[list[torch.Tensor]], Any]]
) -> None:
    """A request whose video has not one row for each token before pruning MUST fail, and others of the batch be served."""
    request, fault = case
    encoders = {Modality.VIDEO: Projector(fault), Modality.IMAGE: Projector(), Modality.AUDIO: Projector()}
    batch = whole(PICTURE, request, LETTER).batch
    first, failed, last = engine.encode_pruned(batch, encoders, None, 0.5)
    holds(isinstance(failed, Exception), f"request {request.id} must fail, but was given rows")
    holds(type(failed) not in ACCIDENTS, f"request {request.id} failed by accident: {type(failed).__name__}: {failed}")
    is_right(first, *batch[0], 0.5)
    is_right(last, *batch[2], 0.5)


def served(answer: Served, request: Request) -> tuple[NDArray[np.int64], torch.Tensor]:
    """The ids and rows, and not an error."""
    if isinstance(answer, Exception):
        raise Mismatch(f"request {request.id}: observed {type(answer).__name__}: {answer}, expected ids and rows")
    return answer


def is_right(answer: Served, request: Request, chunk: Chunk, rate: float) -> None:
    """The request has the ids and rows of its chunk."""
    ids, rows = served(answer, request)
    expected_ids, expected_rows = oracle.step(request, chunk, rate)
    equal(ids, expected_ids, f"the ids of request {request.id}")
    equal(len(rows), len(expected_rows), f"the number of rows of request {request.id}")
    if len(rows):  # the width of no rows is unknown
        equal(rows, expected_rows, f"the rows of request {request.id}", where="row {}".format)
