"""Processors: text and media through the model owner's processor, to expanded ids and items.

    parts: text, ids, raw media -> process -> int64 ids, items with spans, rows, fields and identities
    expanded ids and what a processor returned for all media -> bind_output -> the same items

1. A prompt comes in parts, and a medium stands where its part stands. Nothing is looked for in the text, so what a user
   types can never take a picture: the text of a placeholder is read as plain text, and its id among ids is refused.
2. The owner's processor is run on each medium alone, on a prompt that holds its placeholder and nothing else. What it
   expands to, and its rows, cannot depend on the text or on other media; and ids that were given are never decoded.
3. What was expanded already is not expanded again: `bind_output` finds the media in the ids and changes nothing. A
   bundle, the rows of all pictures in one tensor, is taken apart into what each picture gives alone, padding included.
4. Numbers that do not agree are an error. A picture without a place, or a place without a picture, is read fluently.

Source: transformers 5.24, the processors of the families; `modules.py` says which.
Disagreements: SGLang expands and binds whole prompts, and keeps a bundle whole when its numbers do not agree
(`get_new_expanded_mm_items`, 0.5.23); vLLM finds placeholders in the tokens of the prompt.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reference.identity import identify
from reference.items import Format, Item, Modality, Span, all_spans, check_within
from reference.processors.fallback import Whole
from reference.processors.family import Family, Part, place
from reference.processors.modules import MODULES
from reference.processors.registry import UnknownArchitecture, find_processor

Ids: TypeAlias = NDArray[np.int64]
Processed: TypeAlias = tuple[Ids, tuple[Item, ...]]

__all__ = ["bind_output", "find_processor", "process"]

NAMES = {Modality.IMAGE: "image", Modality.VIDEO: "video", Modality.AUDIO: "audio"}


def process(architecture: str, processor: Any, parts: Sequence[str | Ids | Item]) -> Processed:
    """The expanded ids int64 [n] of a prompt, and its media as items, in the order of the parts.

    architecture: as a checkpoint states it. One that is not registered is served by whatever its processor gives.
    processor: the model owner's transformers processor.
    parts: text, ids int64 [n], and raw media: a picture; frames [n, height, width, 3] with the field "fps"; samples [n]
    with the field "sampling_rate". To text no special token is added, and those in it other than placeholders count.

    Raises ValueError, naming the part, for a medium that the processor does not take or gives no token, and for ids that
    hold a placeholder; TypeError for parts of another kind.
    """
    family = _find(architecture)
    pieces: list[Ids] = []
    items: list[Item] = []
    length = 0
    for number, part in enumerate(parts):
        try:
            ids, item = _read(family, processor, part)
        except (TypeError, ValueError) as error:
            raise type(error)(f"part {number} of the prompt: {error}") from error
        if item is not None:
            spans = tuple(Span(span.first + length, span.last + length) for span in item.spans)
            items.append(replace(item, spans=spans))
        pieces.append(ids)
        length += len(ids)
    return np.concatenate([np.zeros(0, dtype=np.int64), *pieces]), tuple(items)


def bind_output(architecture: str, processor: Any, input_ids: Ids, output: Mapping[str, Any]) -> tuple[Item, ...]:
    """The media of an expanded prompt as items by position: what a processor returned for all of them, taken apart.

    input_ids: int64 [n], as the processor expanded them.
    output: what it returned beside them. In place of `pixel_values`, `pixel_values_videos` or `input_features` there may
    be `image_embeds`, `video_embeds` or `audio_embeds`: for each medium its rows [tokens, hidden] from the encoder.

    Raises ValueError unless the placeholders in the ids are, medium by medium, those that the output asks for.
    """
    family = _find(architecture)
    if not isinstance(input_ids, np.ndarray) or input_ids.dtype != np.int64 or input_ids.ndim != 1:
        raise TypeError("input_ids is a one-dimensional int64 array")
    fillings = _fillings(family, processor)
    first = {token_id: modality for modality, token_id in reversed(fillings.items()) if token_id is not None}
    told_apart = [one for one, token_id in fillings.items() if token_id is None or first[token_id] is one]
    items = [item for modality in told_apart for item in _bind(family, modality, processor, input_ids, output)]
    check_within(all_spans(items), len(input_ids))
    return tuple(sorted(items, key=lambda item: item.spans[0].first))


def _find(architecture: str) -> Family:
    try:
        family: Family = find_processor(MODULES, [architecture])
    except UnknownArchitecture:
        return Whole()
    return family


def _bind(family: Family, modality: Modality, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Item]:
    name = NAMES[modality]
    token_id = family.filling(processor, name)
    embeds, raw = output.get(f"{name}_embeds"), family.parts(name, processor, ids, output)
    if embeds is not None and raw:
        raise ValueError(f"the {name}s come as the encoder's rows and as what it takes; one of them is right")
    parts = raw if embeds is None else _precomputed(name, embeds, output)
    if token_id is None:
        if parts:
            raise ValueError(f"this processor has no token for {name}s, but its output holds {len(parts)}")
        return []
    placed = place(ids, token_id, parts, name)
    content = "feature" if embeds is None else "embedding"
    return [
        _identified(Item(modality=modality, spans=spans, fields=part.fields, **{content: part.rows}))
        for part, spans in zip(parts, placed, strict=True)
    ]


def _precomputed(name: str, embeds: Sequence[Any], output: Mapping[str, Any]) -> list[Part]:
    """Media whose rows the encoder gave, with the grids that positions need."""
    fields = {key: output[key] for key in (f"{name}_grid_thw", f"{name}_sizes") if key in output}
    if name == "video" and "second_per_grid_ts" in output:
        fields["second_per_grid_ts"] = output["second_per_grid_ts"]
    for key, values in fields.items():
        if len(values) != len(embeds):
            raise ValueError(f"{len(embeds)} {name}s have {len(values)} of {key}")
    plain = {key: [value if isinstance(value, float) else value.tolist() for value in values] for key, values in fields.items()}
    return [
        Part(len(rows), None, rows, {key: _plain(values[number]) for key, values in plain.items()})
        for number, rows in enumerate(embeds)
    ]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _identified(item: Item) -> Item:
    return replace(item, identity=identify(item))


def _read(family: Family, processor: Any, part: str | Ids | Item) -> tuple[Ids, Item | None]:
    if isinstance(part, str):
        return _tokenise(family, processor, part), None
    if isinstance(part, Item):
        ids, output = _expand(processor, part)
        items = _bind_alone(family, part.modality, processor, ids, output)
        return ids, items
    if not isinstance(part, np.ndarray) or part.dtype != np.int64 or part.ndim != 1:
        raise TypeError("it is text, a one-dimensional int64 array of ids, or an item")
    for modality, token_id in _fillings(family, processor).items():
        if token_id is not None and (part == token_id).any():
            where = int(np.flatnonzero(part == token_id)[0])
            raise ValueError(f"id {token_id} at {where} stands for media ({NAMES[modality]}); media are parts of their own")
    return part, None


def _bind_alone(family: Family, modality: Modality, processor: Any, ids: Ids, output: Mapping[str, Any]) -> Item:
    """The one item that a medium became, with spans in its own expansion."""
    items = _bind(family, modality, processor, ids, output)
    if len(items) != 1:
        raise ValueError(f"the processor made {len(items)} items of one {NAMES[modality]}")
    return items[0]


def _fillings(family: Family, processor: Any) -> dict[Modality, int | None]:
    return {modality: family.filling(processor, name) for modality, name in NAMES.items()}


def _tokenise(family: Family, processor: Any, text: str) -> Ids:
    """The ids of a text; tokens that stand for media are spelled out."""
    tokenizer = getattr(processor, "tokenizer", processor)
    filled = [token_id for token_id in _fillings(family, processor).values() if token_id is not None]
    stated = [getattr(processor, f"{name}_token", None) for name in NAMES.values()]
    reserved: set[str] = {*(token for token in stated if token is not None), *tokenizer.convert_ids_to_tokens(filled)}
    longest_first = sorted(reserved, key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", text) if reserved else [text]
    ids = [
        one
        for piece in pieces
        if piece
        for one in tokenizer(piece, add_special_tokens=False, split_special_tokens=piece in reserved)["input_ids"]
    ]
    if spelled := set(ids) & set(tokenizer.convert_tokens_to_ids(sorted(reserved))):
        raise ValueError(f"the tokenizer cannot spell the tokens {sorted(spelled)} out as text")
    return np.array(ids, dtype=np.int64)


def _expand(processor: Any, item: Item) -> tuple[Ids, Mapping[str, Any]]:
    """What the owner's processor makes of one medium: the ids of its expansion, and its output."""
    name = NAMES[item.modality]
    if item.format is not Format.RAW or item.is_empty:
        raise ValueError(f"a medium among the parts is raw and has content; this {name} is not")
    token, tokenizer = getattr(processor, f"{name}_token", None), getattr(processor, "tokenizer", None)
    if token is None or tokenizer is None:
        raise ValueError(f"{type(processor).__name__} takes no {name}s: it has no {name}_token, or no tokenizer within it")
    # Between two tokens that no expansion holds, and that no text around them can merge with.
    fence = tokenizer.eos_token
    made = processor(text=[f"{fence}{token}{fence}"], return_tensors="pt", add_special_tokens=False, **_medium(item))
    ids = made["input_ids"][0].numpy()
    if ids[[0, -1]].tolist() != [tokenizer.eos_token_id] * 2:
        raise ValueError(f"{type(processor).__name__} changes the text around a {name}")
    return ids[1:-1], made


def _medium(item: Item) -> dict[str, Any]:
    """One medium as arguments of a processor."""
    if item.modality is Modality.IMAGE:
        return {"images": [item.feature]}
    if item.modality is Modality.AUDIO:
        return {"audio": [item.feature], "sampling_rate": item.read("sampling_rate")}
    count = len(item.feature)
    if not count:
        raise ValueError("a video has at least one frame")
    metadata = {"fps": item.read("fps"), "total_num_frames": count, "frames_indices": list(range(count))}
    return {"videos": [item.feature], "video_metadata": [metadata], "do_sample_frames": False}
