"""Ways in which engines have taken the output of a processor apart wrongly."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import processors as right
from reference.identity import combine_identities, identify
from reference.items import Item, Modality, Span, all_spans

Ids = NDArray[np.int64]
Output = Mapping[str, Any]
Items = tuple[Item, ...]


def renewed(items: list[Item] | Items) -> Items:
    """Items whose identities are those of what they hold now."""
    return tuple(replace(item, identity=identify(item)) for item in items)


@quirk(
    "spans-of-an-expanded-prompt-are-expanded",
    replaces="bind_output",
    bugs=("preexpanded-double-expansion", "O08"),
    caught_by=("PROCESSORS-09", "PROCESSORS-14", "PROCESSORS-15"),
)
def twice(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Each placeholder of an expanded prompt is counted as one that is still to be expanded."""
    made, before = [], 0
    for item in right.bind_output(architecture, processor, input_ids, output):
        spans = []
        for span in item.spans:
            spans.append(Span(span.first + before, span.last + before + len(span) * (item.token_count - 1)))
            before += len(span) * (item.token_count - 1)
        made.append(replace(item, spans=tuple(spans)))
    return tuple(made)


@quirk(
    "markers-are-taken-for-granted",
    replaces="bind_output",
    bugs=("llamacpp-embedding-endpoint-marker",),
    caught_by=("PROCESSORS-16",),
)
def granted(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Whoever writes prompts is trusted to mark each medium; a prompt that came another way, without a mark, is a crash."""
    try:
        return right.bind_output(architecture, processor, input_ids, output)
    except ValueError as error:
        raise AssertionError("number of markers does not match number of media") from error


@quirk(
    "a-run-is-a-medium",
    replaces="bind_output",
    bugs=("O05",),
    caught_by=("PROCESSORS-09",),
)
def joined(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Two media without a token between them are taken for one span, which the first of them gets."""
    items = list(right.bind_output(architecture, processor, input_ids, output))
    for number in range(len(items) - 1, 0, -1):
        before, here = items[number - 1], items[number]
        if before.modality is here.modality and before.spans and here.spans and before.spans[-1].stop == here.spans[0].first:
            merged = (*before.spans[:-1], Span(before.spans[-1].first, here.spans[0].last))
            items[number - 1], items[number] = replace(before, spans=merged), replace(here, spans=here.spans[1:])
    return tuple(items)


@quirk(
    "bundle-is-split-evenly",
    replaces="bind_output",
    bugs=("Q02", "llamacpp-aspect-tiles-segv"),
    caught_by=("PROCESSORS-10", "PROCESSORS-11"),
)
def evenly(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """The rows of a bundle are divided by the number of media, whatever the size of each."""
    items = list(right.bind_output(architecture, processor, input_ids, output))
    for modality in Modality:
        own = [number for number, item in enumerate(items) if item.modality is modality and item.feature is not None]
        if len(own) > 1 and all(items[n].feature.shape[1:] == items[own[0]].feature.shape[1:] for n in own):
            rows = torch.cat([items[number].feature for number in own])
            for number, part in zip(own, torch.tensor_split(rows, len(own)), strict=True):
                items[number] = replace(items[number], feature=part)
    return renewed(items)


@quirk(
    "padding-of-a-bundle-is-kept",
    replaces="bind_output",
    bugs=("padded-ids-vs-mask-length",),
    caught_by=("PROCESSORS-10", "PROCESSORS-11"),
)
def padded(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Pictures are filled up to the largest of their bundle, and stay so when it is taken apart."""
    items = right.bind_output(architecture, processor, input_ids, output)
    whole = output.get("pixel_values")
    if whole is None or len(whole) != len(items):
        return items
    return renewed([replace(item, feature=whole[number : number + 1]) for number, item in enumerate(items)])


@quirk("bundle-is-one-identity", replaces="bind_output", bugs=("Q06",), caught_by=("PROCESSORS-11", "PROCESSORS-12"))
def one_identity(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """The hash is that of the whole bundle, and each of its media keeps it."""
    items = right.bind_output(architecture, processor, input_ids, output)
    if len(items) < 2:
        return items
    together = combine_identities([item.identity for item in items if item.identity is not None])
    return tuple(replace(item, identity=together) for item in items)


@quirk("media-known-by-their-spans", replaces="bind_output", bugs=("prefix-image-blind",), caught_by=("PROCESSORS-11",))
def by_place(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """The identity covers where a medium stands, so that the same picture elsewhere is another one."""
    items = right.bind_output(architecture, processor, input_ids, output)
    return tuple(replace(item, identity=item.spans[0].first.to_bytes(32, "big")) for item in items)


@quirk("first-grid-for-all", replaces="bind_output", bugs=("R03",), caught_by=("PROCESSORS-13", "PROCESSORS-14"))
def first_grid(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Every medium of a bundle has the grid of the first of its kind."""
    items = right.bind_output(architecture, processor, input_ids, output)
    first: dict[Modality, Item] = {}
    return tuple(replace(item, fields=first.setdefault(item.modality, item).fields) for item in items)


@quirk("encoded-media-have-no-grid", replaces="bind_output", bugs=("R03",), caught_by=("PROCESSORS-14",))
def without_grid(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Media that come with the rows of an encoder need no grid for it, and so lose what their positions need."""
    items = right.bind_output(architecture, processor, input_ids, output)
    return tuple(item if item.embedding is None else replace(item, fields={}) for item in items)


@quirk("encoded-rows-in-another-order", replaces="bind_output", bugs=("Q02",), caught_by=("PROCESSORS-15",))
def reversed_rows(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """The rows of an encoder come in the order in which they were sent, here the last first."""
    items = right.bind_output(architecture, processor, input_ids, output)
    rows = [item.embedding for item in items][::-1]
    return tuple(item if own is None else replace(item, embedding=own) for item, own in zip(items, rows, strict=True))


@quirk("odd-numbers-are-let-through", replaces="bind_output", bugs=("O01", "REG3"), caught_by=("PROCESSORS-16",))
def let_through(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Where placeholders and media do not agree, the prompt is served as text."""
    try:
        return right.bind_output(architecture, processor, input_ids, output)
    except ValueError:
        return ()


@quirk("surplus-placeholders-run-out-of-media", replaces="bind_output", bugs=("O01",), caught_by=("PROCESSORS-16",))
def run_out(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """Each placeholder takes the next medium, and nobody asks whether there is one."""
    try:
        return right.bind_output(architecture, processor, input_ids, output)
    except ValueError as error:
        raise StopIteration from error


@quirk("prompt-without-media-has-no-first", replaces="bind_output", bugs=("empty-images-list",), caught_by=("PROCESSORS-08",))
def no_first(architecture: str, processor: Any, input_ids: Ids, output: Output) -> Items:
    """What a processor returned for text alone is given to a loop that looks at the first medium."""
    items = right.bind_output(architecture, processor, input_ids, output)
    all_spans(items)[0]
    return items
