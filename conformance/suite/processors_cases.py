"""Prompts for the rules about processors: each family with its own media."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.cases import Pair
from conformance.compare import refuses
from conformance.engine import Engine
from conformance.oracles import processors as oracle
from conformance.protocol.processors import Module
from conformance.witness import EngineRaised
from conformance.world.processors import (
    ARCHITECTURES,
    MARKERS,
    Prompt,
    id_of,
    marked,
    medium,
    names,
    parts,
    processor,
    spelled,
)  # fmt: skip
from reference.items import Item, MropeLayout, Span

PICTURE_FAMILIES = tuple(family for family in ARCHITECTURES if family != "qwen2_audio")
QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
FRAME_FAMILIES = ("internvl", "smolvlm")
"""Those that show the frames of a video as pictures, each behind a text of its own."""
VIDEO_FAMILIES = (*QWEN, "llava_onevision", *FRAME_FAMILIES)


def each(families: tuple[str, ...], text: str, suffix: str = "") -> dict[str, Prompt]:
    """A prompt for each family, named after it, with the family's markers around media."""
    return {family.replace("_", "-") + suffix: marked(family, text) for family in families}


def family_of(case: Any) -> str:
    """The family of models that a case is about."""
    prompt = getattr(case, "prompt", None) or getattr(case, "first", None) or case
    return str(prompt[0])


BARE = {
    **{f"{name}-bare": Prompt(name.replace("-", "_"), "{rocket}{eye} and {cup}") for name in ("qwen2-vl", "qwen3-vl")},
    "qwen2-audio-bare": Prompt("qwen2_audio", "{hum}{tone}"),
}
"""Media without the markers of a chat template: these are text, and no medium needs them."""

MIXED = each(QWEN, "A {eye}, then {clip}{rocket}.", "-pictures-and-videos")
BUNDLES = {
    **BARE,
    **each(PICTURE_FAMILIES, "A {rocket}, an {eye}{astronaut} and {cup}."),
    **each(QWEN, "{clip} and {film}", "-videos"),
    **MIXED,
    "qwen2-audio": marked("qwen2_audio", "First {tone}, then {hum}{tone}."),
}
"""Media of different sizes, some of them without a token between them."""

PROMPTS = {
    **BUNDLES,
    **each(PICTURE_FAMILIES, "{chelsea}", "-alone"),
    **each(PICTURE_FAMILIES, "{eye} and again {eye}", "-repeated"),
    "llava-onevision-video": Prompt("llava_onevision", "What happens? {clip} And {eye}?"),
    "qwen2-audio-short": marked("qwen2_audio", "{beep}"),
}
FILMS = {
    **each(FRAME_FAMILIES, "What happens? {clip} And {eye}?", "-video"),
    **each(FRAME_FAMILIES, "{clip}{clip}", "-videos"),
    **each(FRAME_FAMILIES, "{eye}{flash}{cup}", "-video-between-pictures"),
}
"""Videos whose frames are pictures to whoever sees but the expanded prompt."""

RAW = {**PROMPTS, **FILMS}
"""All prompts that a processor takes."""

TEXTS = {
    **each(tuple(ARCHITECTURES), "There is nothing to see."),
    **each(("qwen2_vl", "gemma3", "idefics3", "qwen2_audio"), "", "-empty"),
}
UNLIKE = {
    **{name: Pair(case, (0, 1)) for name, case in each(PICTURE_FAMILIES, "{eye} {cup}").items()},
    "qwen2-audio": Pair(marked("qwen2_audio", "{tone} {hum}"), (0, 1)),
    **{name: Pair(case, (0, 1)) for name, case in each(QWEN, "{clip} {film}", "-videos").items()},
}


class Known(NamedTuple):
    """A prompt, and the right answer; a function, for the model owner's processor is slow."""

    prompt: Prompt
    expected: Callable[[], Any]


def shown_as(engine: Engine, case: Prompt, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids of a prompt, in which the frames of videos stand under the token that this engine has for them."""
    filled = ids.copy()
    for name, spans in zip(names(case.text), oracle.spans(case), strict=True):
        if (oracle.kind(name), engine.traits.frame_placeholders) == ("video", "video") and case.family in FRAME_FAMILIES:
            token = id_of(case.family, oracle.PLACEHOLDERS[case.family]["video"])
            filled[[place for span in spans for place in range(span.first, span.stop)]] = token
    return filled


def known(oracle: Callable[[Prompt], Any], case: Prompt) -> Known:
    """A prompt whose right answer comes from an oracle, when it is asked for."""
    return Known(case, lambda: oracle(case))


class Typed(NamedTuple):
    """A prompt in which `token`, written as `~`, is text."""

    prompt: Prompt
    token: str


TYPED = {
    f"{family.replace('_', '-')}-{name}": Typed(marked(family, text), token)
    for family in ARCHITECTURES
    for token in (next(iter(oracle.PLACEHOLDERS[family].values())),)
    for name, text in {
        "before": "What is ~? {" + ("tone}" if family == "qwen2_audio" else "eye}"),
        "behind": "{" + ("tone}" if family == "qwen2_audio" else "eye}") + "~ is what?",
        "without-media": "What is ~?",
    }.items()
}


def typed_parts(case: Typed) -> list[Any]:
    """The parts of a prompt with a typed token."""
    return [one.replace("~", case.token) if isinstance(one, str) else one for one in parts(case.prompt.text)]


def typed_ids(case: Typed) -> NDArray[np.int64]:
    """The right ids: those of the media alone, of the markers around them, and the bytes of everything else."""
    family = case.prompt.family
    own = {name: oracle.alone(family, name)["input_ids"][0].tolist() for name in names(case.prompt.text)}
    media = iter(names(case.prompt.text))
    pieces = [spelled(family, one) if isinstance(one, str) else own[next(media)] for one in typed_parts(case)]
    return np.array([id for piece in pieces for id in piece], dtype=np.int64)


def typed_id(family: str) -> tuple[list[Any], list[tuple[Span, ...]]]:
    """Ids of text with a placeholder's id among them, and a medium behind them; and where the medium stands."""
    name = "tone" if family == "qwen2_audio" else "eye"
    start, end = (np.array(spelled(family, token), dtype=np.int64) for token in MARKERS.get(family, ("", "")))
    typed = np.array([65, id_of(family, next(iter(oracle.FILLING[family].values()))), 65], dtype=np.int64)
    ids, alone = np.concatenate([typed, start]), oracle.spans(Prompt(family, "{" + name + "}"))
    spans = [tuple(Span(len(ids) + span.first, len(ids) + span.last) for span in own) for own in alone]
    return [ids, medium(name), end], spans


class Changed(NamedTuple):
    """An expanded prompt to which something was done that makes ids and media disagree."""

    prompt: Prompt
    how: str


def changed_ids(case: Changed) -> NDArray[np.int64]:
    """Ids with one placeholder more or fewer, with those of a whole medium more or fewer, or with none at all."""
    ids, spans = oracle.ids(case.prompt), oracle.spans(case.prompt)
    token = id_of(case.prompt.family, next(iter(oracle.FILLING[case.prompt.family].values())))
    own = oracle.alone(case.prompt.family, names(case.prompt.text)[0])["input_ids"][0].numpy()
    changes: dict[str, Callable[[], NDArray[np.int64]]] = {
        "one-more": lambda: np.append(ids, token),
        "one-fewer": lambda: np.delete(ids, spans[-1][-1].last),
        "a-medium-more": lambda: np.concatenate([ids, own]),
        "a-medium-fewer": lambda: np.delete(ids, [place for span in spans[0] for place in range(span.first, span.stop)]),
        "none": lambda: ids[ids != token],
    }
    return changes[case.how]()


CHANGED = {
    f"{family.replace('_', '-')}-{how}": Changed(
        marked(family, "{tone} {hum}" if family == "qwen2_audio" else "{eye} {cup}"), how
    )
    for family in ARCHITECTURES
    for how in ("one-more", "one-fewer", "a-medium-more", "a-medium-fewer", "none")
}


def layout_of(family: str) -> MropeLayout:
    """How a family of Qwen numbers its positions, with the ids of its tokenizer."""
    start, end = MARKERS[family]
    tokens = {**oracle.PLACEHOLDERS[family], "vision_start": start, "vision_end": end}
    return MropeLayout(
        family=family,
        tokens_per_second=2.0 if family == "qwen2_5_vl" else None,
        frames_apart=family == "qwen3_vl",
        token_ids={name: id_of(family, token) for name, token in tokens.items()},
    )


def broken() -> Any:
    """A module that cannot be imported."""
    raise ImportError("cannot import name 'AutoTensor' from 'transformers'")


MODULES = (
    Module("models.first", ("AlphaForCausalLM", "AlphaMoeForCausalLM"), lambda: "first"),
    Module("models.broken", ("BetaForConditionalGeneration",), broken),
    Module("models.last", ("GammaForConditionalGeneration",), lambda: "last"),
)


class Sought(NamedTuple):
    """Architectures, and what serves them."""

    architectures: tuple[str, ...]
    expected: str


def refusal(engine: Engine, architectures: tuple[str, ...]) -> str:
    """What an engine says when it finds no processor; nothing when it finds one."""
    refuses(lambda: engine.find_processor(MODULES, architectures), " or ".join(architectures))
    try:
        return str(engine.find_processor(MODULES, architectures))
    except EngineRaised as raised:
        return str(raised.error)


def emptied(case: Prompt) -> list[Any]:
    """The parts of a prompt, its media without their frames or samples."""
    return [replace(one, feature=one.feature[:0]) if isinstance(one, Item) else one for one in parts(case.text)]


def bare(case: Prompt) -> Any:
    """The tokenizer of a processor, in its place."""
    return processor(case.family).tokenizer
