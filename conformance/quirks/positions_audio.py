"""Ways in which engines have got recordings, videos with their recordings, and rotary sections wrong."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from conformance.quirks.positions import Answer, Ids, Items, delta_of
from reference import positions as right
from reference.items import Item, Modality, MropeLayout, all_spans


def filled(items: Sequence[Item]) -> list[int]:
    """The positions of these items, in their order."""
    return [position for span in all_spans(items) for position in range(span.first, span.stop)]


def recordings(items: Items) -> list[Item]:
    """In the order of the prompt."""
    return sorted((item for item in items if item.modality is Modality.AUDIO), key=lambda item: item.spans)


def films(items: Items) -> list[tuple[Item, Item]]:
    """Videos with their recordings, in the order of the prompt."""
    videos = sorted((item for item in items if right.has_audio(item)), key=lambda item: item.spans)
    return [(one, next(heard for heard in recordings(items) if heard.spans > one.spans)) for one in videos]


@quirk(
    "audio-pinned-on-two-axes",
    replaces="positions",
    bugs=("A02",),
    caught_by=("POSITIONS-23", "POSITIONS-24", "POSITIONS-25"),
)
def pinned(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A recording counts up in time, and stays at one height and one width."""
    table = right.positions(input_ids, items, layout)[0]
    for item in recordings(items):
        places = filled([item])
        table[1:, places] = table[1:, places[:1]]
    return table, delta_of(table)


@quirk("audio-counted-behind-its-video", replaces="positions", bugs=(), caught_by=("POSITIONS-24", "POSITIONS-25"))
def one_after_the_other(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A recording counts from where its video ends, as if it stood behind it: what is heard comes after all that is seen."""
    table = right.positions(input_ids, items, layout)[0]
    for video, audio in films(items):
        seen, heard = filled([video]), filled([audio])
        stop, largest = max(seen + heard) + 1, int(table[:, seen + heard].max())
        table[:, heard] = int(table[:, seen].max()) + 1 + np.arange(len(heard))
        table[:, stop:] += int(table[:, heard].max()) - largest
    return table, delta_of(table)


@quirk("audio-counted-anew-in-each-piece", replaces="positions", bugs=(), caught_by=("POSITIONS-25",))
def piece_by_piece(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Each piece of a recording begins at the time of the piece of the video before it, and not where the last one ended."""
    table = right.positions(input_ids, items, layout)[0]
    for _, audio in films(items):
        for span in audio.spans:
            table[:, span.first : span.stop] = table[0, span.first - 1] + np.arange(len(span))
    return table, delta_of(table)


@quirk("text-behind-the-last-piece", replaces="positions", bugs=(), caught_by=("POSITIONS-24",))
def behind_the_last_piece(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """Text behind a video with its recording goes on at the largest number of the last piece, which may not be that of both."""
    table = right.positions(input_ids, items, layout)[0]
    for film in films(items):
        places, last = filled(film), all_spans(film)[-1]
        table[:, last.stop :] -= int(table[:, places].max()) - int(table[:, last.first : last.stop].max())
    return table, delta_of(table)


@quirk("recordings-paired-by-counting", replaces="positions", bugs=(), caught_by=("POSITIONS-24",))
def paired_by_counting(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """The first video with a recording takes the first recording of the prompt, which may stand by itself before it."""
    table = right.positions(input_ids, items, layout)[0]
    for (video, own), taken in zip(films(items), recordings(items), strict=False):
        if taken is not own:
            heard = filled([own])
            extent = int(table[:, filled([video, own])].max())
            table[:, heard] = table[0, video.spans[0].first] + np.arange(len(heard)) % taken.token_count
            table[:, max(heard) + 1 :] += int(table[:, filled([video, own])].max()) - extent
    return table, delta_of(table)


@quirk("video-without-its-recording", replaces="positions", bugs=(), caught_by=("POSITIONS-26",))
def silent(input_ids: Ids, items: Items, layout: MropeLayout) -> Answer:
    """A video whose recording was lost is numbered as a silent one, and the positions of the recording as text."""
    if any(item.modality is Modality.AUDIO for item in items):
        return right.positions(input_ids, items, layout)
    table = np.tile(np.arange(len(input_ids)), (3, 1))
    for item in items:
        places = filled([item])
        cells: NDArray[np.int64] = np.arange(len(places))
        table[:, places] = places[0] + cells
    return table, delta_of(table)


@quirk(
    "sections-in-blocks",
    replaces="rotary_axes",
    bugs=("qwen3-interleaved-vs-blocked",),
    caught_by=("POSITIONS-27",),
)
def blocked(sections: tuple[int, int, int], interleaved: bool) -> NDArray[np.int64]:
    """The sections lie in blocks where the axes should take turns."""
    return right.rotary_axes(sections, False)


@quirk("turns-to-the-end", replaces="rotary_axes", bugs=("qwen3-interleaved-vs-blocked",), caught_by=("POSITIONS-27",))
def to_the_end(sections: tuple[int, int, int], interleaved: bool) -> NDArray[np.int64]:
    """The axes take turns to the last frequency, and not only as long as height and width have any left."""
    return np.arange(sum(sections)) % 3 if interleaved else right.rotary_axes(sections, False)
