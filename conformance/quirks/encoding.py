"""Ways in which engines have got the slicing of embeddings and the choice of encoders wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.quirk import quirk
from reference import encoding as right
from reference.encoding import Encoder
from reference.items import Chunk, Modality, Span


@quirk(
    "last-position-exclusive", replaces="count_in_chunk", bugs=("emb-cache-length-check-on-hit",), caught_by=("ENCODING-01",)
)
def exclusive_count(spans: Sequence[Span], chunk: Chunk) -> int:
    """The last position of a span is taken for the first one after it, so that one position a span is missing."""
    return sum(max(0, min(span.last, chunk.stop) - max(span.first, chunk.prefix)) for span in spans)


@quirk("whole-item-counted", replaces="count_in_chunk", bugs=("budget-by-span-not-embeds", "Z05"), caught_by=("ENCODING-01",))
def whole_count(spans: Sequence[Span], chunk: Chunk) -> int:
    """A span that the chunk touches is counted in full."""
    return sum(len(span) for span in spans if span.first < chunk.stop and span.last >= chunk.prefix)


@quirk(
    "whole-embedding-in-every-chunk",
    replaces="slice_chunk",
    bugs=("chunked-prefill-old-merge-shape", "E03", "Z03"),
    caught_by=("ENCODING-02", "ENCODING-03"),
)
def unsliced(embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """A chunk that touches an item gets all of its rows, also those of positions that are done or to come."""
    part = right.slice_chunk(embedding, spans, chunk)
    return embedding if len(part) else part


@quirk("rows-from-the-first-one-on", replaces="slice_chunk", bugs=("E03",), caught_by=("ENCODING-02", "ENCODING-03"))
def from_the_first(embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """A chunk gets the right number of rows, counted from the first row of the item."""
    return embedding[: len(right.slice_chunk(embedding, spans, chunk))]


@quirk("gaps-counted-as-rows", replaces="slice_chunk", bugs=(), caught_by=("ENCODING-02", "ENCODING-03"))
def by_distance(embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """The row of a position is its distance from the item's first position, as if there were no text between the frames."""
    first = spans[0].first
    count = right.count_in_chunk(spans, chunk)
    start = max(0, chunk.prefix - first)
    return right.slice_chunk(embedding, spans, Chunk(0, spans[-1].stop))[start : start + count]


@quirk("short-embedding-sliced", replaces="slice_chunk", bugs=("L11",), caught_by=("ENCODING-04",))
def any_length(embedding: torch.Tensor, spans: Sequence[Span], chunk: Chunk) -> torch.Tensor:
    """An embedding of any length is sliced, and gives fewer rows than there are positions, or rows of other positions."""
    before = right.count_in_chunk(spans, Chunk(0, chunk.prefix))
    return embedding[before : before + right.count_in_chunk(spans, chunk)]


@quirk("convention-before-registration", replaces="find_encoder", bugs=(), caught_by=("ENCODING-25",))
def model_first(modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """The model's own method is used even where another encoder was registered to replace it."""
    method: Encoder | None = getattr(model, f"get_{modality.name.lower()}_feature", None)
    return method or right.find_encoder(modality, registered, model)


@quirk("looks-for-the-plural", replaces="find_encoder", bugs=(), caught_by=("ENCODING-26",))
def plural(modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """The model is asked for `get_image_features`, which its owner's class has and its serving class has not."""
    method: Encoder | None = getattr(model, f"get_{modality.name.lower()}_features", None)
    return method or right.find_encoder(modality, registered, None)


@quirk("images-for-videos", replaces="find_encoder", bugs=(), caught_by=("ENCODING-26", "ENCODING-27"))
def image_method(modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """Videos go to the model's image encoder."""
    method = Modality.IMAGE if modality is Modality.VIDEO and modality not in registered else modality
    return right.find_encoder(method, registered if method is modality else {}, model)


@quirk("empty-tower", replaces="find_encoder", bugs=("G11",), caught_by=("ENCODING-27",))
def empty_tower(modality: Modality, registered: Mapping[Modality, Encoder], model: Any) -> Encoder:
    """A model that was loaded without an encoder answers with rows of zeros."""
    try:
        return right.find_encoder(modality, registered, model)
    except right.EncodingError:
        return lambda items: [torch.zeros(item.token_count, 5) for item in items]
