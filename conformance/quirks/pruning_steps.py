"""Ways in which engines have fed pruned videos wrongly to the language model."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import pruning as right
from reference.encoder_cache import EncoderCache
from reference.encoding import Encoder, EncodingError
from reference.items import Chunk, Item, Modality, Request

Batch: TypeAlias = Sequence[tuple[Request, Chunk]]
Encoders: TypeAlias = Mapping[Modality, Encoder]
Answers: TypeAlias = list[tuple[NDArray[np.int64], torch.Tensor] | EncodingError]


@quirk("one-request-in-a-batch", replaces="encode_pruned", bugs=(), caught_by=("PRUNING-19", "PRUNING-24"))
def one_request(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The ids of the whole batch are taken for those of the request with the video, so that it has to be alone."""
    videos = [request for request, _ in batch if _has_video(request)]
    assert not videos or len(batch) == 1
    return right.encode_pruned(batch, encoders, cache, rate)


@quirk(
    "one-span-is-no-video",
    replaces="encode_pruned",
    bugs=(),
    caught_by=("PRUNING-19", "PRUNING-20", "PRUNING-21", "PRUNING-22", "PRUNING-23", "PRUNING-24"),
)
def one_span(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """A video in one span takes the path of pictures, which knows nothing of pruned results, and crashes."""
    if any(len(item.spans) == 1 for request, _ in batch for item in request.items if item.modality is Modality.VIDEO):
        raise AttributeError("'PrunedResult' object has no attribute 'reshape'")
    return right.encode_pruned(batch, encoders, cache, rate)


@quirk(
    "laid-out-before-it-is-seen",
    replaces="encode_pruned",
    bugs=("evs-qwen3-interleaved",),
    caught_by=("PRUNING-19", "PRUNING-20", "PRUNING-21"),
)
def never_laid_out_again(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The prompt is laid out with even shares before the encoder runs, and stays so: rows fall under wrong timestamps."""
    answers: Answers = []
    for (request, chunk), whole in zip(batch, _in_full(batch, rate), strict=True):
        (full,) = right.encode_pruned([(request, whole)], encoders, cache, rate)
        answers.append(full if isinstance(full, EncodingError) else _evenly(request, chunk, rate, full[1]))
    return answers


@quirk("hit-without-counts", replaces="encode_pruned", bugs=("V03",), caught_by=("PRUNING-20", "PRUNING-21"))
def hit_without_counts(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The cache keeps the rows and not the counts of the frames, so that a hit is laid out with even shares."""
    answers: Answers = []
    for request, chunk in batch:
        found = [cache.get(item.identity, item.token_count) for item in request.items if item.identity] if cache else []
        if any(rows is not None for rows in found):
            answers += never_laid_out_again([(request, chunk)], encoders, cache, rate)
        else:
            answers += right.encode_pruned([(request, chunk)], encoders, cache, rate)
    return answers


@quirk(
    "position-channels-left",
    replaces="encode_pruned",
    bugs=("evs-extra-channels-not-stripped",),
    caught_by=("PRUNING-19", "PRUNING-20", "PRUNING-21", "PRUNING-23", "PRUNING-24"),
)
def channels_left(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """Positions ride along as four more columns, and nobody takes them off before the merge."""
    answers = right.encode_pruned(batch, encoders, cache, rate)
    return [one if isinstance(one, EncodingError) else (one[0], torch.nn.functional.pad(one[1], (0, 4))) for one in answers]


@quirk(
    "position-channels-left-on-a-hit",
    replaces="encode_pruned",
    bugs=("V03", "evs-extra-channels-not-stripped"),
    caught_by=("PRUNING-20", "PRUNING-21"),
)
def channels_left_on_a_hit(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The columns with positions are taken off what the encoder gives, and not off what the cache gives."""
    known = cache is not None and any(
        cache.get(item.identity, item.token_count) is not None
        for request, _ in batch
        for item in request.items
        if item.identity
    )
    return (channels_left if known else right.encode_pruned)(batch, encoders, cache, rate)


@quirk(
    "chunk-of-the-full-prompt",
    replaces="encode_pruned",
    bugs=("V01", "evs-video-then-image-mrope"),
    caught_by=("PRUNING-19", "PRUNING-20", "PRUNING-21"),
)
def of_the_full_prompt(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The ids of a chunk are cut from the prompt before pruning, and its rows from the pruned one."""
    answers = right.encode_pruned(batch, encoders, cache, rate)
    return [
        one if isinstance(one, EncodingError) else (request.input_ids[chunk.prefix : chunk.stop], one[1])
        for one, (request, chunk) in zip(answers, batch, strict=True)
    ]


@quirk("one-layout-a-video", replaces="encode_pruned", bugs=("V03",), caught_by=("PRUNING-19",))
def one_layout(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """Two requests of a batch with the same video share its result, and with it the layout of the first one's prompt."""
    made: dict[bytes | None, tuple[NDArray[np.int64], torch.Tensor] | EncodingError] = {}
    answers = []
    for (request, _), one in zip(batch, right.encode_pruned(batch, encoders, cache, rate), strict=True):
        video = next((item.identity for item in request.items if item.modality is Modality.VIDEO), request.id.encode())
        answers.append(made.setdefault(video, one))
    return answers


@quirk("encoded-in-every-step", replaces="encode_pruned", bugs=("V03",), caught_by=("PRUNING-22",))
def in_every_step(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The number of rows in the cache never is that of the placeholders, so that a video is encoded in every step."""
    return right.encode_pruned(batch, encoders, None, rate)


@quirk("rate-0-is-the-default", replaces="encode_pruned", bugs=(), caught_by=("PRUNING-23",))
def the_default(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """A rate of 0 is taken for none, and none for the default."""
    chunks = [chunk for _, chunk in batch] if rate else _in_full(batch, 0.5)
    requests = [request for request, _ in batch]
    return right.encode_pruned(list(zip(requests, chunks, strict=True)), encoders, cache, rate or 0.5)


@quirk("pruned-by-the-encoder-too", replaces="encode_pruned", bugs=("V01",), caught_by=("PRUNING-24",))
def whatever_comes(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """Rows that are too few or too many are stretched or cut to the tokens before pruning, and then pruned."""

    def fitted(encoder: Encoder) -> Encoder:
        def run(items: Sequence[Item]) -> Any:
            given = encoder(items)
            return [rows[torch.arange(i.token_count).clamp(max=len(rows) - 1)] for rows, i in zip(given, items, strict=True)]

        return run

    return right.encode_pruned(batch, {kind: fitted(encoder) for kind, encoder in encoders.items()}, cache, rate)


@quirk("one-video-fails-the-batch", replaces="encode_pruned", bugs=(), caught_by=("PRUNING-24",))
def fails_the_batch(batch: Batch, encoders: Encoders, cache: EncoderCache | None, rate: float) -> Answers:
    """The first video without its rows ends the step for every request."""
    answers = right.encode_pruned(batch, encoders, cache, rate)
    for one in answers:
        if isinstance(one, EncodingError):
            raise one
    return answers


def _has_video(request: Request) -> bool:
    return any(item.modality is Modality.VIDEO for item in request.items)


def _shares(item: Item, rate: float) -> NDArray[np.bool_] | None:
    """A mask with the first frame whole and even shares of the others, by the frames that the prompt shows."""
    if item.modality is not Modality.VIDEO:
        return None
    frames = item.fields["video_grid_thw"][0]
    size = item.token_count // frames
    left = right.retained_count(size, frames, rate) - size
    counts = [size, *(left // (frames - 1) + (n < left % (frames - 1)) for n in range(frames - 1))]
    return np.concatenate([np.arange(size) < count for count in counts])


def _length(request: Request, rate: float) -> int:
    masks = [_shares(item, rate) for item in request.items]
    return len(request.input_ids) - sum(int((~mask).sum()) for mask in masks if mask is not None)


def _in_full(batch: Batch, rate: float) -> list[Chunk]:
    """For each request the chunk that is all of its pruned prompt."""
    return [Chunk(0, _length(request, rate)) for request, _ in batch]


def _evenly(request: Request, chunk: Chunk, rate: float, rows: torch.Tensor) -> tuple[NDArray[np.int64], torch.Tensor]:
    """The chunk with even shares in the place of what was kept, and the rows in the order of their positions."""
    ids, spans = right.prune_prompt(request.input_ids, request.items, [_shares(item, rate) for item in request.items])
    places = sorted(place for item in spans for span in item for place in range(span.first, span.stop))
    return ids[chunk.prefix : chunk.stop], rows[[n for n, place in enumerate(places) if chunk.prefix <= place < chunk.stop]]
