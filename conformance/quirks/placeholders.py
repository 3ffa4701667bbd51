"""Ways in which engines have found and padded placeholders wrongly."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import placeholders as right
from reference.items import Item, Modality, Span, all_spans
from reference.sentinels import SHIFT, Sentinels, fill, item_sentinels, sentinels, sentinels_from_hash

Ids = NDArray[np.int64]


@quirk("search-wraps-around", replaces="find_spans", bugs=(), caught_by=("PLACEHOLDERS-01",))
def by_roll(input_ids: Ids, token_id: int) -> list[tuple[int, int]]:
    """Each id is compared with its neighbour in a ring: a prompt that is nothing but a picture has no span."""
    mask = torch.from_numpy(input_ids) == token_id
    starts = (mask & ~torch.roll(mask, 1)).nonzero().flatten().tolist()
    ends = (mask & ~torch.roll(mask, -1)).nonzero().flatten().tolist()
    return list(zip(starts, ends, strict=True))


@quirk("last-run-needs-text-after-it", replaces="find_spans", bugs=(), caught_by=("PLACEHOLDERS-01",))
def without_the_end(input_ids: Ids, token_id: int) -> list[Span]:
    """A run is recorded when the text after it is seen, so a prompt that ends with a picture loses it."""
    return [span for span in right.find_spans(input_ids, token_id) if span.stop < len(input_ids)]


@quirk("one-span-over-all", replaces="find_spans", bugs=("prefix-noncontiguous-item",), caught_by=("PLACEHOLDERS-01",))
def first_to_last(input_ids: Ids, token_id: int) -> list[Span]:
    """From the first placeholder to the last is one span, the text between the frames of a video included."""
    found = right.find_spans(input_ids, token_id)
    return [Span(found[0].first, found[-1].last)] if found else []


@quirk(
    "literal-placeholder-padded",
    replaces="pad_spans",
    bugs=("O02", "text-literal-placeholder-steals-binding"),
    caught_by=("PLACEHOLDERS-02",),
)
def wherever_the_token_is(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Every placeholder id of the prompt is padded, one that the user typed as well."""
    padded = right.pad_spans(input_ids, items)
    for item in items:
        for span in item.spans:
            padded[padded == input_ids[span.first]] = item_sentinels(item)[0]
    return padded


@quirk("pads-in-place", replaces="pad_spans", bugs=("Q05",), caught_by=("PLACEHOLDERS-03",))
def in_place(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The caller's array is padded, so that a second request built from it starts with the first one's picture."""
    padded = right.pad_spans(input_ids, items)
    input_ids[:] = padded
    return padded


@quirk("no-copy-without-media", replaces="pad_spans", bugs=(), caught_by=("PLACEHOLDERS-03",))
def own_array(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """A prompt without media comes back as the very array of the caller."""
    return right.pad_spans(input_ids, items) if items else input_ids


@quirk(
    "placeholders-left-raw",
    replaces="pad_spans",
    bugs=("H07", "prefix-image-blind", "lmcache-token-only-key"),
    caught_by=(
        "PLACEHOLDERS-04",
        "PLACEHOLDERS-05",
        "PLACEHOLDERS-06",
        "PLACEHOLDERS-07",
        "PLACEHOLDERS-10",
        "PLACEHOLDERS-11",
        "PLACEHOLDERS-17",
    ),
)
def untouched(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The placeholder ids stay as they are: prompts with different pictures look alike to the prefix cache."""
    return input_ids.copy()


@quirk(
    "same-id-past-the-first-position",
    replaces="pad_spans",
    bugs=("H10",),
    caught_by=("PLACEHOLDERS-04", "PLACEHOLDERS-05", "PLACEHOLDERS-06", "PLACEHOLDERS-10", "PLACEHOLDERS-11"),
)
def first_position_only(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Only the first position of a span carries the content: a match that stops later sees no difference."""
    return _pad(input_ids, items, lambda item: (item_sentinels(item)[0], SHIFT, SHIFT, SHIFT))


@quirk(
    "padded-by-place-in-the-request",
    replaces="pad_spans",
    bugs=("C09",),
    caught_by=("PLACEHOLDERS-04", "PLACEHOLDERS-05", "PLACEHOLDERS-06", "PLACEHOLDERS-10", "PLACEHOLDERS-11"),
)
def by_index(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The first picture of every request is padded with the same ids, whatever it shows."""
    return right.pad_spans(input_ids, [replace(item, caller_hash=index) for index, item in enumerate(items)])


@quirk(
    "phase-continues-over-spans",
    replaces="pad_spans",
    bugs=(),
    caught_by=("PLACEHOLDERS-05", "PLACEHOLDERS-10", "PLACEHOLDERS-11"),
)
def running_phase(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The cycle goes on where the span before it stopped, so the same frame has other ids after another one."""
    padded = right.pad_spans(input_ids, items)
    for item in items:
        positions = [position for span in item.spans for position in range(span.first, span.stop)]
        padded[positions] = fill(item_sentinels(item), len(positions))
    return padded


@quirk(
    "items-bound-in-prompt-order",
    replaces="pad_spans",
    bugs=("O05", "Q01"),
    caught_by=("PLACEHOLDERS-05", "PLACEHOLDERS-10", "PLACEHOLDERS-11"),
)
def kth_span_kth_item(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The recorded spans are ignored: the items are dealt out over them in prompt order, a frame each."""
    spans = all_spans(items)
    dealt = [replace(items[min(k, len(items) - 1)], spans=(span,)) for k, span in enumerate(spans)]
    return right.pad_spans(input_ids, dealt)


@quirk(
    "ids-narrowed-to-32-bits",
    replaces="pad_spans",
    bugs=(),
    caught_by=("PLACEHOLDERS-05", "PLACEHOLDERS-10", "PLACEHOLDERS-11"),
)
def narrowed(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Ids pass through int32, where a sentinel of 62 bits loses its upper half."""
    return right.pad_spans(input_ids, items).astype(np.int32).astype(np.int64)


@quirk(
    "callers-hash-ignored",
    replaces="pad_spans",
    bugs=("C02", "C09", "uuid-lost-when-caches-off"),
    caught_by=("PLACEHOLDERS-06", "PLACEHOLDERS-10"),
)
def by_content(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Items are padded by content although the caller named them, so that the router's keys never match."""
    return right.pad_spans(input_ids, [replace(item, caller_hash=None) for item in items])


@quirk("callers-hash-folded", replaces="pad_spans", bugs=("C01",), caught_by=("PLACEHOLDERS-06",))
def low_32_bits(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Only the low 32 bits of a caller's hash count, so that two of his pictures may become one."""
    named = [item if item.caller_hash is None else replace(item, caller_hash=item.caller_hash % 2**32) for item in items]
    return right.pad_spans(input_ids, named)


@quirk("callers-hash-little-endian", replaces="pad_spans", bugs=(), caught_by=("PLACEHOLDERS-10",))
def hash_from_the_other_end(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """The bytes of a caller's hash are read from the wrong end: consistent, yet no router computes such keys."""
    return _pad(input_ids, items, _little_endian)


@quirk("neighbours-padded-as-one", replaces="pad_spans", bugs=(), caught_by=("PLACEHOLDERS-05",))
def run_of_the_first(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Two items without text between them are found as one run and get the sentinels of the first."""
    padded = right.pad_spans(input_ids, items)
    by_end = {span.stop: item for item in items for span in item.spans}
    for span in all_spans(items):
        if span.first in by_end:
            padded[span.first : span.stop] = fill(item_sentinels(by_end[span.first]), len(span))
    return padded


@quirk("later-item-wins", replaces="pad_spans", bugs=(), caught_by=("PLACEHOLDERS-07", "PLACEHOLDERS-17"))
def clips_and_overwrites(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Spans are clipped to the prompt, and of two items at one position the later one wins."""
    padded = input_ids.copy()
    for item in items:
        for span in item.spans:
            padded[span.first : span.stop] = fill(item_sentinels(item), len(span))[: max(len(padded) - span.first, 0)]
    return padded


@quirk("padding-lengthens-the-prompt", replaces="pad_spans", bugs=("N03",), caught_by=("PLACEHOLDERS-07", "PLACEHOLDERS-17"))
def by_list_assignment(input_ids: Ids, items: Sequence[Item]) -> Ids:
    """Spans are assigned to slices of a list, which grows when one leaves the prompt."""
    ids = input_ids.tolist()
    for item in items:
        for span in item.spans:
            ids[span.first : span.stop] = fill(item_sentinels(item), len(span)).tolist()
    return np.array(ids, dtype=np.int64)


@quirk("modalities-exclusive-end", replaces="token_modalities", bugs=(), caught_by=("PLACEHOLDERS-08",))
def one_short(length: int, items: Sequence[Item]) -> list[int]:
    """The inclusive end of a span is taken for an exclusive one, so its last position counts as text."""
    modalities = right.token_modalities(length, items).tolist()
    for span in all_spans(items):
        modalities[span.last] = 0
    return [int(value) for value in modalities]


@quirk("frames-counted-as-pictures", replaces="token_modalities", bugs=("O05",), caught_by=("PLACEHOLDERS-08",))
def no_videos(length: int, items: Sequence[Item]) -> list[int]:
    """Video frames share the placeholder of pictures and are taken for pictures."""
    return [Modality.IMAGE if value == Modality.VIDEO else int(value) for value in right.token_modalities(length, items)]


@quirk("modalities-overwrite", replaces="token_modalities", bugs=(), caught_by=("PLACEHOLDERS-09",))
def later_modality_wins(length: int, items: Sequence[Item]) -> list[int]:
    """Spans are clipped to the prompt, and of two items at one position the later one wins."""
    modalities = [0] * length
    for item in items:
        for span in item.spans:
            modalities[span.first : min(span.stop, length)] = [item.modality] * (min(span.stop, length) - span.first)
    return modalities[:length]


def _pad(input_ids: Ids, items: Sequence[Item], values: Callable[[Item], Sentinels]) -> Ids:
    padded = right.pad_spans(input_ids, items)
    for item in items:
        for span in item.spans:
            padded[span.first : span.stop] = fill(values(item), len(span))
    return padded


def _little_endian(item: Item) -> Sentinels:
    if item.caller_hash is None:
        return sentinels(item.identity or b"")
    return sentinels_from_hash(int.from_bytes(item.caller_hash.to_bytes(8, "little"), "big"))
