"""Ways in which engines have got prompts and media through a processor wrong, and what they made of raw media."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import processors as right
from reference.items import Item, Span, all_spans
from reference.placeholders import find_spans
from reference.processors.modules import MODULES
from reference.processors.registry import Module, UnknownArchitecture, find_processor

Ids = NDArray[np.int64]
Parts = Sequence[str | Ids | Item]
Processed = tuple[Ids, tuple[Item, ...]]


def moved(item: Item, first: int, last: int) -> Item:
    """The item with the ends of each span moved, where that leaves it a position."""
    spans = [(span.first + first, span.last + last) for span in item.spans]
    return replace(item, spans=tuple(Span(max(start, 0), stop) for start, stop in spans if max(start, 0) <= stop))


def placeholder(processor: Any, parts: Parts) -> str:
    """The placeholder of the first medium of a prompt, or of any kind."""
    kinds = [part.modality.name.lower() for part in parts if isinstance(part, Item)] or ["image", "audio"]
    return next(str(getattr(processor, f"{kind}_token")) for kind in kinds if hasattr(processor, f"{kind}_token"))


@quirk(
    "text-around-media-is-trimmed",
    replaces="process",
    bugs=("O07",),
    caught_by=("PROCESSORS-01", "PROCESSORS-02", "PROCESSORS-06"),
)
def trimmed(architecture: str, processor: Any, parts: Parts) -> Processed:
    """White space at the ends of a text that stands beside a medium is lost."""
    return right.process(architecture, processor, [part.strip() if isinstance(part, str) else part for part in parts])


@quirk("ids-are-decoded-and-tokenised-again", replaces="process", bugs=("O07",), caught_by=("PROCESSORS-05",))
def retokenised(architecture: str, processor: Any, parts: Parts) -> Processed:
    """The owner's processor takes text, so ids are decoded for it and tokenised a second time."""
    decode = processor.tokenizer.decode
    return right.process(architecture, processor, [decode(one) if isinstance(one, np.ndarray) else one for one in parts])


@quirk(
    "placeholder-of-an-old-configuration",
    replaces="process",
    bugs=("P02",),
    caught_by=("PROCESSORS-01", "PROCESSORS-04"),
)
def stale(architecture: str, processor: Any, parts: Parts) -> Processed:
    """The id that fills the places of media is that of the first checkpoint of the family, whatever the tokenizer says."""
    ids, items = right.process(architecture, processor, parts)
    ids = ids.copy()
    for span in all_spans(items):
        ids[span.first : span.stop] = 151_655
    return ids, items


@quirk(
    "a-start-token-before-ids",
    replaces="process",
    bugs=("O07",),
    caught_by=("PROCESSORS-04", "PROCESSORS-05"),
)
def started(architecture: str, processor: Any, parts: Parts) -> Processed:
    """A prompt of ids gets a start token that the same prompt of text does not get."""
    start = np.array([processor.tokenizer.eos_token_id], dtype=np.int64)
    given = any(isinstance(part, np.ndarray) for part in parts)
    return right.process(architecture, processor, [start, *parts] if given else parts)


@quirk(
    "expanded-placeholders-are-expanded-again",
    replaces="process",
    bugs=("preexpanded-double-expansion",),
    caught_by=("PROCESSORS-01", "PROCESSORS-04"),
)
def twice(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Each placeholder of an expanded picture is taken for a picture that is still to be expanded."""
    ids, items = right.process(architecture, processor, parts)
    counts = np.ones(len(ids), dtype=np.int64)
    for item in items:
        for span in item.spans:
            counts[span.first : span.stop] = item.token_count
    return np.repeat(ids, counts), items


@quirk(
    "typed-placeholder-takes-the-picture",
    replaces="process",
    bugs=("O02", "O03", "text-literal-placeholder-steals-binding"),
    caught_by=("PROCESSORS-06",),
)
def first_token(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Media go to the first placeholders of the whole text, whoever wrote them; those left over are text."""
    token = placeholder(processor, parts)
    media = iter([part for part in parts if isinstance(part, Item)])
    placed: list[str | Ids | Item] = []
    for part in parts:
        if not isinstance(part, str):
            placed += [next(media, token)] if isinstance(part, Item) else [part]
            continue
        before, *others = part.split(token)
        placed.append(before)
        for other in others:
            placed += [next(media, token), other]
    return right.process(architecture, processor, placed)


@quirk("typed-placeholders-are-counted", replaces="process", bugs=("O01",), caught_by=("PROCESSORS-06",))
def counted(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Every placeholder in the text takes the next medium, and nobody asks whether there is one."""
    token = placeholder(processor, parts)
    media = iter([part for part in parts if isinstance(part, Item)])
    for part in parts:
        for _ in range(part.count(token) if isinstance(part, str) else isinstance(part, Item)):
            next(media)
    return right.process(architecture, processor, parts)


@quirk("typed-ids-shift-the-media", replaces="process", bugs=("O03",), caught_by=("PROCESSORS-07",))
def shifted(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Media are looked for in the ids, where the first run of placeholders is the one that the caller gave."""
    try:
        return right.process(architecture, processor, parts)
    except ValueError:
        given = next(part for part in parts if isinstance(part, np.ndarray))
        ids, items = right.process(architecture, processor, [given * 0, *(part for part in parts if part is not given)])
        ids[: len(given)] = given
        placeholders = [int(ids[item.spans[0].first]) for item in items]
        return ids, tuple(
            replace(item, spans=find_spans(ids, token)[:1]) for item, token in zip(items, placeholders, strict=True)
        )


@quirk(
    "spans-begin-with-the-marker",
    replaces="process",
    bugs=("target-not-at-start",),
    caught_by=("PROCESSORS-02", "PROCESSORS-04"),
)
def with_marker(architecture: str, processor: Any, parts: Parts) -> Processed:
    """A span begins with the id before the first placeholder and ends one too early."""
    ids, items = right.process(architecture, processor, parts)
    return ids, tuple(moved(item, -1, -1) if item.token_count > 1 else item for item in items)


@quirk(
    "one-token-fewer-than-planned",
    replaces="process",
    bugs=("audio-float32-ceil", "llava-unpad-rounding", "tgi-slot-alloc-mismatch"),
    caught_by=("PROCESSORS-02", "PROCESSORS-17", "PROCESSORS-18"),
)
def one_fewer(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Planner and processor round differently: the last position of each span is not counted."""
    ids, items = right.process(architecture, processor, parts)
    return ids, tuple(moved(item, 0, -1) if item.token_count > 1 else replace(item, spans=()) for item in items)


@quirk("last-medium-for-all", replaces="process", bugs=("Q03",), caught_by=("PROCESSORS-03",))
def last_for_all(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Every medium has the rows of the last one: the loop's variable was used in place of the list."""
    ids, items = right.process(architecture, processor, parts)
    return ids, tuple(replace(item, feature=items[-1].feature) for item in items)


@quirk(
    "media-are-left-out-in-silence",
    replaces="process",
    bugs=("REG3",),
    caught_by=("PROCESSORS-19", "PROCESSORS-20", "PROCESSORS-21"),
)
def left_out(architecture: str, processor: Any, parts: Parts) -> Processed:
    """Media that the processor does not take are dropped, and the text is answered without them."""
    try:
        return right.process(architecture, processor, parts)
    except ValueError:
        return right.process(architecture, processor, [part for part in parts if isinstance(part, str)])


@quirk("placeholders-without-media", replaces="process", bugs=("REG2",), caught_by=("PROCESSORS-20", "PROCESSORS-21"))
def bare(architecture: str, processor: Any, parts: Parts) -> Processed:
    """What loaded as a tokenizer is used as one: each medium becomes one token, and the model answers as to text."""
    try:
        return right.process(architecture, processor, parts)
    except ValueError:
        return np.full(len(parts), 0, dtype=np.int64), ()


@quirk("empty-media-crash", replaces="process", bugs=("empty-images-list",), caught_by=("PROCESSORS-08",))
def empty(architecture: str, processor: Any, parts: Parts) -> Processed:
    """A prompt without media is given to a loop that looks at the first of them."""
    ids, items = right.process(architecture, processor, parts)
    items[0]
    return ids, items


@quirk("unregistered-is-text-only", replaces="process", bugs=("REG3",), caught_by=("PROCESSORS-25",))
def text_only(architecture: str, processor: Any, parts: Parts) -> Processed:
    """An architecture that is not on the list is served as a text model, its media as text."""
    ids, items = right.process(architecture, processor, parts)
    known = {one for module in MODULES for one in module.architectures}
    return ids, items if architecture in known else ()


@quirk(
    "ids-between-media-are-media",
    replaces="process",
    bugs=("O05",),
    caught_by=("PROCESSORS-02", "PROCESSORS-04"),
)
def gaps(architecture: str, processor: Any, parts: Parts) -> Processed:
    """A medium of several spans is one span from the first to the last of its placeholders, with the text between."""
    ids, items = right.process(architecture, processor, parts)
    return ids, tuple(replace(item, spans=(Span(all_spans([item])[0].first, all_spans([item])[-1].last),)) for item in items)


@quirk("failed-modules-are-skipped", replaces="find_processor", bugs=("REG1",), caught_by=("PROCESSORS-24",))
def skipped(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """A module that cannot be imported is left out without a word, as if there were no such model."""
    served: dict[str, Any] = {}
    for module in modules:
        try:
            served |= dict.fromkeys(module.architectures, module.load())
        except ImportError:
            continue
    for architecture in architectures:
        if architecture in served:
            return served[architecture]
    raise ValueError(f"no processor for {', '.join(architectures)}; known: {', '.join(served)}")


@quirk("one-failed-module-fails-all", replaces="find_processor", bugs=("REG1",), caught_by=("PROCESSORS-22", "PROCESSORS-23"))
def all_or_nothing(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """All modules are imported before any is used, and the first that fails ends it."""
    for module in modules:
        module.load()
    return find_processor(modules, architectures)


@quirk("unknown-is-served-by-the-first", replaces="find_processor", bugs=("REG2",), caught_by=("PROCESSORS-23",))
def first_module(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """An architecture that nobody serves is served by whatever is there."""
    try:
        return find_processor(modules, architectures)
    except UnknownArchitecture:
        return modules[0].load()


@quirk("unknown-without-the-known", replaces="find_processor", bugs=("REG1",), caught_by=("PROCESSORS-23",))
def without_list(modules: Sequence[Module], architectures: Sequence[str]) -> Any:
    """The error for an unknown architecture does not say which are known."""
    try:
        return find_processor(modules, architectures)
    except UnknownArchitecture:
        raise ValueError(f"no processor registered for architecture {list(architectures)}") from None
