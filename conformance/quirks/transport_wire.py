"""Ways in which requests have been lost, changed or believed on their way between processes."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from conformance.quirk import quirk
from reference.items import Item, Request, Span
from reference.transport import wire as right
from reference.transport.survey import WireError


def changed(request: Request, change: Callable[[Item], Item]) -> Request:
    """The request with each item changed."""
    return replace(request, items=tuple(map(change, request.items)))


def with_feature(request: Request, change: Callable[[Any], Any]) -> Request:
    """The request with each feature that is a tensor or an array changed."""
    return changed(
        request, lambda item: replace(item, feature=change(item.feature)) if hasattr(item.feature, "shape") else item
    )


@quirk("identity-stays-behind", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-01", "TRANSPORT-09"))
def identity_stays(request: Request) -> bytes:
    """What an item was identified by is not sent along."""
    return right.encode_message(changed(request, lambda item: replace(item, identity=None)))


@quirk("items-by-position", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-01", "TRANSPORT-09", "TRANSPORT-11"))
def by_position(data: bytes) -> Request:
    """Items come in the order of their positions, whatever the order in which they were sent."""
    request = right.decode_message(data)
    return replace(request, items=tuple(sorted(request.items, key=lambda item: item.spans[:1])))


@quirk("one-nan-for-all", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-02", "TRANSPORT-10"))
def one_nan(data: bytes) -> Request:
    """Every NaN of a tensor arrives as the same one."""

    def quiet(feature: Any) -> Any:
        wide = isinstance(feature, torch.Tensor) and feature.dtype in (torch.float32, torch.float64)
        return feature.where(~feature.isnan(), torch.nan) if wide else feature

    return with_feature(right.decode_message(data), quiet)


@quirk("bfloat16-as-float32", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-02", "TRANSPORT-04"))
def as_float32(request: Request) -> bytes:
    """numpy has no bfloat16, so such a tensor is sent as float32."""
    return right.encode_message(with_feature(request, lambda one: one.float() if one.dtype == torch.bfloat16 else one))


@quirk(
    "arrays-through-lists",
    replaces="encode_message",
    bugs=(),
    caught_by=("TRANSPORT-03", "TRANSPORT-04", "TRANSPORT-05", "TRANSPORT-09", "TRANSPORT-10"),
)
def through_lists(request: Request) -> bytes:
    """Arrays are sent as lists of numbers, and come back in the dtype that such lists have."""

    def listed(feature: Any) -> Any:
        return np.array(feature.tolist()) if isinstance(feature, np.ndarray) and feature.dtype.kind != "O" else feature

    return right.encode_message(with_feature(request, listed))


@quirk("at-least-one-dimension", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-04",))
def one_dimension(data: bytes) -> Request:
    """A number without dimensions arrives as a row of one."""
    return with_feature(right.decode_message(data), lambda one: one.reshape(one.shape or (1,)))


@quirk("memory-as-it-lies", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-05", "TRANSPORT-09"))
def as_it_lies(request: Request) -> bytes:
    """The memory of a tensor is sent from its beginning, whatever the strides."""

    def memory(feature: Any) -> Any:
        if isinstance(feature, np.ndarray):
            return feature.ravel(order="K").reshape(feature.shape)
        if feature.layout != torch.strided or feature.is_contiguous():
            return feature
        stored = torch.empty(0, dtype=feature.dtype).set_(feature.untyped_storage())
        return stored[: feature.numel()].reshape(feature.shape) if stored.numel() >= feature.numel() else feature

    return right.encode_message(with_feature(request, memory))


@quirk("holes-are-filled", replaces="decode_message", bugs=("is-embed-lost-on-wire",), caught_by=("TRANSPORT-06",))
def filled_holes(data: bytes) -> Request:
    """Of an item with holes its first position and its length arrive, and the positions between are the item's, too."""
    return changed(
        right.decode_message(data),
        lambda item: replace(item, spans=(Span(item.spans[0].first, item.spans[-1].last),)) if item.spans else item,
    )


@quirk("neighbours-are-joined", replaces="encode_message", bugs=("is-embed-lost-on-wire",), caught_by=("TRANSPORT-06",))
def joined_neighbours(request: Request) -> bytes:
    """Two spans without a position between them arrive as one."""

    def joined(item: Item) -> Item:
        spans: list[Span] = []
        for span in item.spans:
            touches = spans and spans[-1].stop == span.first
            spans[-1:] = [Span(spans[-1].first, span.last)] if touches else [*spans[-1:], span]
        return replace(item, spans=tuple(spans))

    return right.encode_message(changed(request, joined))


@quirk("whole-numbers", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-07", "TRANSPORT-11"))
def whole_numbers(data: bytes) -> Request:
    """A field that equals an integer arrives as one: 1.0 and True as 1."""

    def whole(value: Any) -> Any:
        return int(value) if isinstance(value, float | bool) and value == int(value) else value

    return changed(
        right.decode_message(data),
        lambda item: replace(item, fields={name: whole(value) for name, value in item.fields.items()}),
    )


@quirk("empty-is-nothing", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-07",))
def empty_is_nothing(request: Request) -> bytes:
    """Fields that are empty are left out to save bytes."""

    def kept(item: Item) -> Item:
        full = {name: one for name, one in item.fields.items() if not hasattr(one, "__len__") or len(one)}
        return replace(item, fields=full)

    return right.encode_message(changed(request, kept))


@quirk(
    "given-away",
    replaces="encode_message",
    bugs=("Q05", "T02"),
    caught_by=("TRANSPORT-01", "TRANSPORT-02", "TRANSPORT-04", "TRANSPORT-05", "TRANSPORT-06", "TRANSPORT-09", "TRANSPORT-10"),
)
def given_away(request: Request) -> bytes:
    """The sender gives a feature's memory away with the first message; the second one has nothing to send."""
    data = right.encode_message(request)
    for item in request.items:
        if isinstance(item.feature, torch.Tensor) and item.feature.layout == torch.strided:
            item.feature.detach().zero_()
    return data


@quirk("views-of-the-message", replaces="decode_message", bugs=("T02",), caught_by=("TRANSPORT-10",))
def views(data: bytes) -> Request:
    """Tensors are views of the message, so that a reader who writes into one changes what all others read."""

    def view(feature: Any) -> Any:
        if not isinstance(feature, torch.Tensor) or feature.dtype != torch.float32 or not feature.numel():
            return feature
        place = data.index(feature.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = torch.frombuffer(data, dtype=feature.dtype, count=feature.numel(), offset=place)
        return flat.reshape(feature.shape)

    return with_feature(right.decode_message(data), view)


@quirk("layout-in-the-bytes", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-11",))
def layout_in_bytes(request: Request) -> bytes:
    """A tensor that lies in one piece is sent in another form than one that must be copied."""

    def form(feature: Any) -> Any:
        plain = isinstance(feature, torch.Tensor) and feature.dtype == torch.float32 and feature.layout == torch.strided
        return feature.detach().resolve_neg().numpy() if plain and feature.is_contiguous() else feature

    return right.encode_message(with_feature(request, form))


@quirk("filled-up-with-zeros", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-12",))
def filled_up(data: bytes) -> Request:
    """What is missing at the end of a message is read as zeros."""
    for missing in range(10):
        try:
            return right.decode_message(data + bytes(missing))
        except WireError:
            continue
    return right.decode_message(data)


@quirk("reads-to-its-end", replaces="decode_message", bugs=(), caught_by=("TRANSPORT-13",))
def to_its_end(data: bytes) -> Request:
    """A reader stops at the end of the message, and what stands behind it is anybody's."""
    for surplus in range(5):
        try:
            return right.decode_message(data[: len(data) - surplus])
        except WireError:
            continue
    return right.decode_message(data)


@quirk("stumbles-over-damage", replaces="decode_message", bugs=(),
       caught_by=("TRANSPORT-12", "TRANSPORT-13", "TRANSPORT-14"))  # fmt: skip
def stumbles(data: bytes) -> Request:
    """A damaged message ends in an IndexError somewhere in the reader, and with it the process."""
    try:
        return right.decode_message(data)
    except WireError as error:
        raise IndexError("index out of range") from error


@quirk("copied-before-sent", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-15",))
def copied(request: Request) -> bytes:
    """Media are rebuilt as the objects say, by whatever function they name."""
    return right.encode_message(changed(request, lambda item: deepcopy(item) if isinstance(item.feature, object) else item))


@quirk("values-of-sparse-tensors", replaces="encode_message", bugs=("embeds-sparse-dense-bomb", "embeds-negative-sparse"),
       caught_by=("TRANSPORT-16",))  # fmt: skip
def sparse_values(request: Request) -> bytes:
    """Of a sparse tensor the values are sent, wherever its indices say that they belong."""

    def dense(item: Item) -> Item:
        is_sparse = isinstance(item.embedding, torch.Tensor) and item.embedding.layout == torch.sparse_coo
        return replace(item, embedding=item.embedding._values()[:, None]) if is_sparse else item

    return right.encode_message(changed(request, dense))


@quirk("in-words", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-17",))
def in_words(request: Request) -> bytes:
    """What has no form on the wire is sent as the text that print shows."""

    def worded(item: Item) -> Item:
        known = (bool, int, float, str, bytes, list, tuple, dict, torch.Tensor, np.ndarray, type(None))
        return replace(item, fields={name: one if isinstance(one, known) else str(one) for name, one in item.fields.items()})

    return right.encode_message(changed(request, worded))


@quirk("narrow-integers", replaces="encode_message", bugs=(), caught_by=("TRANSPORT-17",))
def narrow(request: Request) -> bytes:
    """Integers of more than 64 bits lose the upper ones."""

    def cut(value: Any) -> Any:
        return value % 2**64 if isinstance(value, int) and not -(2**63) <= value < 2**64 else value

    return right.encode_message(
        changed(request, lambda item: replace(item, fields={name: cut(value) for name, value in item.fields.items()}))
    )
