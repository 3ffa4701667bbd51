"""Prompts for the rules about processors: each family with its own media."""

from collections.abc import Callable, Mapping
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
from conformance.world.processors import ARCHITECTURES, Prompt, id_of, medium, names, parts, processor
from reference.items import Item, Span

PICTURE_FAMILIES = tuple(family for family in ARCHITECTURES if family != "qwen2_audio")
QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
VIDEO_FAMILIES = (*QWEN, "llava_onevision")


def each(families: tuple[str, ...], text: str, suffix: str = "") -> dict[str, Prompt]:
    """A prompt for each family, named after it."""
    return {family.replace("_", "-") + suffix: Prompt(family, text) for family in families}


MIXED = each(QWEN, "A {eye}, then {clip}{rocket}.", "-pictures-and-videos")
BUNDLES = {
    **each(PICTURE_FAMILIES, "A {rocket}, an {eye}{astronaut} and {cup}."),
    **each(QWEN, "{clip} and {film}", "-videos"),
    **MIXED,
    "qwen2-audio": Prompt("qwen2_audio", "First {tone}, then {hum}{tone}."),
}
"""Media of different sizes, some of them without a token between them."""

PROMPTS = {
    **BUNDLES,
    **each(PICTURE_FAMILIES, "{chelsea}", "-alone"),
    **each(PICTURE_FAMILIES, "{eye} and again {eye}", "-repeated"),
    "llava-onevision-video": Prompt("llava_onevision", "What happens? {clip} And {eye}?"),
    "qwen2-audio-short": Prompt("qwen2_audio", "{beep}"),
}
TEXTS = {
    **each(tuple(ARCHITECTURES), "There is nothing to see."),
    **each(("qwen2_vl", "gemma3", "idefics3", "qwen2_audio"), "", "-empty"),
}
UNLIKE = {
    **{name: Pair(Prompt(case.family, "{eye} {cup}"), (0, 1)) for name, case in each(PICTURE_FAMILIES, "").items()},
    "qwen2-audio": Pair(Prompt("qwen2_audio", "{tone} {hum}"), (0, 1)),
    **{f"{name}-videos": Pair(Prompt(case.family, "{clip} {film}"), (0, 1)) for name, case in each(QWEN, "").items()},
}


class Known(NamedTuple):
    """A prompt, and the right answer; a function, for the model owner's processor is slow."""

    prompt: Prompt
    expected: Callable[[], Any]


def known(oracle: Callable[[Prompt], Any], case: Prompt) -> Known:
    """A prompt whose right answer comes from an oracle, when it is asked for."""
    return Known(case, lambda: oracle(case))


class Typed(NamedTuple):
    """A prompt in which `token`, written as `~`, is text."""

    prompt: Prompt
    token: str


TYPED = {
    f"{family.replace('_', '-')}-{name}": Typed(Prompt(family, text), token)
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
    """The right ids: those of the media alone, and the bytes of everything else."""
    own = {name: oracle.alone(case.prompt.family, name)["input_ids"][0].numpy() for name in names(case.prompt.text)}
    media = iter(names(case.prompt.text))
    pieces = [oracle.spelled(one) if isinstance(one, str) else own[next(media)] for one in typed_parts(case)]
    return np.concatenate(pieces)


def typed_id(family: str) -> tuple[list[Any], list[tuple[Span, ...]]]:
    """Ids of text with a placeholder's id among them, and a medium behind them; and where the medium stands."""
    name = "tone" if family == "qwen2_audio" else "eye"
    ids = np.array([65, id_of(family, next(iter(oracle.FILLING[family].values()))), 65], dtype=np.int64)
    alone = oracle.spans(Prompt(family, "{" + name + "}"))
    return [ids, medium(name)], [tuple(Span(span.first + 3, span.last + 3) for span in own) for own in alone]


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
        Prompt(family, "{tone} {hum}" if family == "qwen2_audio" else "{eye} {cup}"), how
    )
    for family in ARCHITECTURES
    for how in ("one-more", "one-fewer", "a-medium-more", "a-medium-fewer", "none")
}
LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "qwen2_vl": {},
    "qwen2_5_vl": {"tokens_per_second": 2.0},
    "qwen3_vl": {"frames_apart": True},
}


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


def empty(case: Prompt) -> Item:
    """The medium of a prompt without its frames or samples."""
    whole = medium(names(case.text)[0])
    return replace(whole, feature=whole.feature[:0])


def bare(case: Prompt) -> Any:
    """The tokenizer of a processor, in its place."""
    return processor(case.family).tokenizer
