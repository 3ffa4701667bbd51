"""Ways in which engines have got the positions of a prompt wrong."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import positions as right
from reference.items import Item, Modality, MropeLayout, Span

Ids = NDArray[np.int64]
Answer = tuple[NDArray[np.int64], int]
Items = Sequence[Item]


def with_fields(items: Items, **fields: object) -> list[Item]:
    """The items with other values for fields that they have."""
    return [replace(item, fields={name: fields.get(name, value) for name, value in item.fields.items()}) for item in items]


def shifted_from(table: NDArray[np.int64], place: int, by: int) -> None:
    """All numbers from a position on, moved."""
    table[:, place:] += by


def delta_of(table: NDArray[np.int64]) -> int:
    return int(table.max(initial=-1)) + 1 - len(table.T)


@quirk(
    "text-overlaps-a-long-video",
    replaces="positions",
    bugs=(),
    caught_by=("POSITIONS-01", "POSITIONS-07", "POSITIONS-20"),
)
def behind_the_larger_side(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Text behind a video goes on at its larger side: its time, which may be larger, is left out."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        for span in item.spans:
            inside = table[:, span.first : span.stop]
            shifted_from(table, span.stop, int(inside[1:].max()) - int(inside.max()))
    return table, delta_of(table)


@quirk(
    "text-goes-on-behind-the-last-token",
    replaces="positions",
    bugs=(),
    caught_by=(
        "POSITIONS-01",
        "POSITIONS-07",
        "POSITIONS-11",
        "POSITIONS-20",
    ),
)
def behind_the_time_of_the_last_token(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """What follows media goes on at the time of their last token: a picture has used numbers up to its last row by then."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        for span in item.spans:
            inside = table[:, span.first : span.stop]
            shifted_from(table, span.stop, int(inside[0].max()) - int(inside.max()))
    return table, delta_of(table)


@quirk(
    "numbered-by-token-count",
    replaces="positions",
    bugs=("llamacpp-ntokens-vs-npos",),
    caught_by=(
        "POSITIONS-01",
        "POSITIONS-07",
        "POSITIONS-11",
    ),
)
def origin_at_the_token(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A picture of 16 tokens uses 16 numbers, whatever its rows and columns are."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        for span in item.spans:
            extent = int(table[:, span.first : span.stop].max() - table[1, span.first]) + 1
            shifted_from(table, span.stop, len(span) - extent)
    return table, delta_of(table)


@quirk(
    "rows-and-columns-swapped",
    replaces="positions",
    bugs=(),
    caught_by=("POSITIONS-02", "POSITIONS-03", "POSITIONS-04", "POSITIONS-05", "POSITIONS-07", "POSITIONS-11"),
)
def width_before_height(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A grid is read as frames, width and height."""
    turned = [
        replace(item, fields={n: (v[0], v[2], v[1]) if n.endswith("grid_thw") else v for n, v in item.fields.items()})
        for item in items
    ]
    return right.positions(input_ids, turned, layout)


@quirk(
    "merge-size-left-out",
    replaces="positions",
    bugs=(),
    caught_by=(
        "POSITIONS-01",
        "POSITIONS-02",
        "POSITIONS-03",
        "POSITIONS-04",
        "POSITIONS-05",
        "POSITIONS-07",
        "POSITIONS-11",
        "POSITIONS-20",
    ),
)
def in_patches(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Rows and columns are counted in patches, of which a token has several."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        for span in item.spans:
            inside = table[1:, span.first : span.stop]
            inside += (layout.spatial_merge_size - 1) * (inside - inside.min())
    return table, delta_of(table)


@quirk(
    "frame-time-is-constant",
    replaces="positions",
    bugs=("hf5-video-t-constant",),
    caught_by=(
        "POSITIONS-01",
        "POSITIONS-04",
        "POSITIONS-07",
        "POSITIONS-13",
        "POSITIONS-20",
    ),
)
def time_times_the_start(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The time at which a video begins is multiplied by the interval of its frames, and all frames share the product."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        if layout.tokens_per_second is not None and item.modality is Modality.VIDEO:
            for span in item.spans:
                interval = item.read("second_per_grid_ts") * layout.tokens_per_second
                table[0, span.first : span.stop] = int(table[1, span.first] * interval)
    return table, delta_of(table)


@quirk(
    "seconds-cut-to-whole-ones",
    replaces="positions",
    bugs=("hf-second-per-grid-int",),
    caught_by=("POSITIONS-04", "POSITIONS-13"),
)
def whole_seconds(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Seconds a frame are made an integer before they are multiplied: above 1 frame a second all frames share one time."""
    tiny = 1e-9
    cut = [
        replace(item, fields={n: max(int(v), tiny) if n.startswith("second") else v for n, v in item.fields.items()})
        for item in items
    ]
    return right.positions(input_ids, cut, layout)


@quirk(
    "seconds-lost-on-the-way",
    replaces="positions",
    bugs=("omni-second-per-grid-name", "hf-generate-drops-second-per-grid"),
    caught_by=("POSITIONS-04", "POSITIONS-12", "POSITIONS-13"),
)
def one_second(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The field with the seconds has another name here than there, and each video counts 1 second a frame."""
    return right.positions(input_ids, [replace(i, fields={**i.fields, "second_per_grid_ts": 1.0}) for i in items], layout)


@quirk("seconds-default-to-one", replaces="positions", bugs=("omni-second-per-grid-name",), caught_by=("POSITIONS-12",))
def one_second_by_default(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A video that comes without its seconds counts 1 second a frame."""
    return right.positions(input_ids, [replace(i, fields={"second_per_grid_ts": 1.0, **i.fields}) for i in items], layout)


@quirk("interval-multiplied-first", replaces="positions", bugs=(), caught_by=("POSITIONS-13",))
def interval_first(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Seconds and tokens per second are multiplied before the frame is: near a whole number the time is another."""
    interval = layout.tokens_per_second
    if interval is None:
        return right.positions(input_ids, items, layout)
    scaled = [
        replace(item, fields={n: v * interval if n.startswith("second") else v for n, v in item.fields.items()})
        for item in items
    ]
    return right.positions(input_ids, scaled, replace(layout, tokens_per_second=1))


@quirk(
    "frames-apart-count-on",
    replaces="positions",
    bugs=(),
    caught_by=(
        "POSITIONS-01",
        "POSITIONS-05",
        "POSITIONS-07",
        "POSITIONS-11",
    ),
)
def time_over_frames(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Frames with timestamps between them advance in time as well, as they do where no text tells the time."""
    table = right.positions(input_ids, items, layout)[0]
    for item in items:
        for number, span in enumerate(item.spans):
            table[0, span.first : span.stop] += number
    return table, delta_of(table)


@quirk(
    "delta-of-the-time-axis",
    replaces="positions",
    bugs=("mlx-mrope-chunk-offset-delta",),
    caught_by=(
        "POSITIONS-06",
        "POSITIONS-18",
    ),
)
def delta_in_time(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The delta is taken from the time of the last position, where a picture may have larger rows and columns."""
    table = right.positions(input_ids, items, layout)[0]
    return table, int(table[0].max(initial=-1)) + 1 - len(table.T)


@quirk(
    "delta-not-kept",
    replaces="positions",
    bugs=("mlx-mrope-chunk-offset-delta",),
    caught_by=("POSITIONS-06", "POSITIONS-07", "POSITIONS-18"),
)
def no_delta(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The delta is not kept after the prompt, and the reply is numbered by its tokens."""
    return right.positions(input_ids, items, layout)[0], 0


@quirk(
    "no-grid-is-text",
    replaces="positions",
    bugs=("R03", "R04"),
    caught_by=("POSITIONS-08",),
)
def text_without_grids(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """An item whose grid did not arrive is numbered as text."""
    known = [item for item in items if any(name.endswith("grid_thw") for name in item.fields)]
    return right.positions(input_ids, known, layout)


@quirk("runs-out-of-grids", replaces="positions", bugs=("cached-req-state-no-grid",), caught_by=("POSITIONS-08",))
def next_grid(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Grids are taken from a list by number, which fails with an index out of range where one is missing."""
    grids = [item for item in items if any(name.endswith("grid_thw") for name in item.fields)]
    return right.positions(input_ids, [grids[number] for number, _ in enumerate(items)], layout)


@quirk("grid-made-to-fit", replaces="positions", bugs=(), caught_by=("POSITIONS-09",))
def made_to_fit(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A grid that does not fill its span is cut, or the rest of the span counted up in its last row."""
    merge = layout.spatial_merge_size
    fitted = []
    for item in items:
        name = f"{item.modality.name.lower()}_grid_thw"
        apart = layout.frames_apart and item.modality is Modality.VIDEO
        frames, height, width = item.read(name)
        fits = frames * height * width // merge**2 == item.token_count and (not apart or frames == len(item.spans))
        grid = (len(item.spans) if apart else 1, merge, merge * len(item.spans[0]))
        fitted.append(item if fits else replace(item, fields={**item.fields, name: grid}))
    return right.positions(input_ids, fitted, layout)


@quirk("typed-placeholder-takes-the-grid", replaces="positions", bugs=("O02",), caught_by=("POSITIONS-10",))
def from_the_first_placeholder(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Media are looked for in the ids: the first placeholder begins the first item, whoever wrote it."""
    moved = []
    for item in items:
        first = min(span.first for one in items for span in one.spans)
        token = input_ids[first]
        by = first - int(np.flatnonzero(input_ids == token)[0]) if item.spans[0].first == first else 0
        moved.append(replace(item, spans=tuple(Span(span.first - by, span.last - by) for span in item.spans)))
    return right.positions(input_ids, moved, layout)


@quirk("media-counted-by-start-tokens", replaces="positions", bugs=("O02",), caught_by=("POSITIONS-10", "POSITIONS-11"))
def by_start_tokens(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """There are as many media as start tokens with a placeholder behind them; a start token at the very end is too much."""
    starts = np.flatnonzero(input_ids == layout.token_ids["vision_start"])
    kinds = (layout.token_ids["image"], layout.token_ids["video"])
    count = sum(int(input_ids[start + 1]) in kinds for start in starts)
    runs = sorted(span for item in items for span in item.spans)[:count]
    found = [item for item in items if all(span in runs for span in item.spans)]
    return right.positions(input_ids, found, layout)


@quirk(
    "grids-dealt-in-list-order",
    replaces="positions",
    bugs=("Q01", "O05"),
    caught_by=(
        "POSITIONS-09",
        "POSITIONS-14",
    ),
)
def in_list_order(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Grids are dealt out to the places of their kind in the order of the list, and made to fit."""
    dealt = []
    for kind, group in groupby(sorted(items, key=lambda item: item.modality), key=lambda item: item.modality):
        listed = list(group)
        places = sorted(listed, key=lambda item: item.spans)
        fields = [item.fields for item in listed]
        dealt += [replace(place, fields=given) for place, given in zip(places, fields, strict=True) if kind]
    return made_to_fit(input_ids, dealt, layout)


@quirk("grids-lost-for-embeddings", replaces="positions", bugs=("R03", "R04"), caught_by=("POSITIONS-15",))
def text_for_embeddings(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The processor numbers what it has processed: an item that comes as an embedding is numbered as text."""
    return right.positions(input_ids, [item for item in items if item.embedding is None], layout)
