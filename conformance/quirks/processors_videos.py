"""Ways in which engines have got videos through a processor wrong: the times that it writes, the frames that it shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance.quirk import quirk
from conformance.quirks.processors import Parts, Processed
from reference import processors as right
from reference.items import Item, Modality


def with_videos(parts: Parts, change: Callable[[Item], Item]) -> Parts:
    """The parts of a prompt in which each video that has a frame was changed."""
    return [
        change(part) if isinstance(part, Item) and part.modality is Modality.VIDEO and len(part.feature) else part
        for part in parts
    ]


@quirk(
    "written-times-at-a-default-rate",
    replaces="process",
    bugs=("F02", "video-numframes-vs-fps"),
    caught_by=("PROCESSORS-01", "PROCESSORS-04"),
)
def default_rate(architecture: str, processor: Any, parts: Parts) -> Processed:
    """The rate of a video was lost on the way, and the times between its frames are those of 24 frames a second."""
    return right.process(architecture, processor, with_videos(parts, lambda item: replace(item, fields={"fps": 24.0})))


@quirk(
    "written-times-of-two-timelines",
    replaces="process",
    bugs=("video-metadata-sampled-vs-source",),
    caught_by=("PROCESSORS-01", "PROCESSORS-04"),
)
def two_timelines(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Frames are numbered as they were sampled, and divided by the rate of the file from which every fourth was taken."""
    faster = with_videos(parts, lambda item: replace(item, fields={"fps": item.fields["fps"] * 4}))
    return right.process(architecture, processor, faster)


@quirk(
    "sampled-frames-are-sampled-again",
    replaces="process",
    bugs=("F01", "do-sample-frames-metadata-override"),
    caught_by=("PROCESSORS-01", "PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-04"),
)
def sampled_again(architecture: str, processor: Any, parts: Parts) -> Processed:
    """That frames were sampled already is a default that the processor does not believe: it takes every second one."""

    def half(item: Item) -> Item:
        return replace(item, feature=item.feature[::2], fields={"fps": item.fields["fps"] / 2})

    return right.process(architecture, processor, with_videos(parts, half))


@quirk("rows-of-a-video-replace-pictures", replaces="process", bugs=(), caught_by=("PROCESSORS-03",))
def replaced(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Pictures and frames have one name for their rows, and those of the video, which come last, are all that is left."""
    ids, items = right.process(architecture, processor, parts)
    films = [item.feature for item in items if item.modality is Modality.VIDEO]
    return ids, tuple(replace(item, feature=films[-1]) if films else item for item in items)


@quirk(
    "frames-are-pictures-of-their-own",
    replaces="process",
    bugs=("prefix-noncontiguous-item",),
    caught_by=("PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-04"),
)
def one_each(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Each run of placeholders is a medium, so that a video with text between its frames is as many pictures."""
    ids, items = right.process(architecture, processor, parts)
    made: list[Item] = []
    for item in items:
        several = item.modality is Modality.VIDEO and len(item.spans) > 1
        made += [replace(item, modality=Modality.IMAGE, spans=(span,)) for span in item.spans] if several else [item]
    return ids, tuple(made)
