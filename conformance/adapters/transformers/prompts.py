"""A prompt with media through transformers' own processor, and what it looks up in a prompt.

The processor gets the whole prompt at once. Where each medium stands is what the processor says itself: the characters that
it wrote in place of a placeholder (`return_text_replacement_offsets`), and the tokens of these that stand for rows. What it
returns of rows for all media is cut by the sizes that it returns beside them, as its models cut it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.transformers.cpu import named
from reference.items import Item, Modality, Span

ROWS = {Modality.IMAGE: "pixel_values", Modality.VIDEO: "pixel_values_videos", Modality.AUDIO: "input_features"}
ASKED = {"add_special_tokens": False, "return_offsets_mapping": True, "return_text_replacement_offsets": True}

TILED = {
    "InternVLProcessor": "image_seq_length", "Gemma3Processor": "image_seq_length", "Idefics3Processor": "image_seq_len",
    "SmolVLMProcessor": "image_seq_len",
}  # fmt: skip
"""The processors whose rows are tiles, and where each says how many tokens a tile has."""

FAMILIES = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_onevision", "internvl", "gemma3", "idefics3", "smolvlm", "pixtral",
    "qwen2_audio",
)  # fmt: skip
"""All that the suite shows: each has a processor of its own in transformers, which gets a prompt and its media as they are."""

Part = str | NDArray[np.int64] | Item


def process(processor: Any, parts: Sequence[Part]) -> tuple[NDArray[np.int64], list[Item]]:
    """The processor on the whole prompt.

    It takes text and no ids: a prompt with a part of ids is given to it as a list of its parts, as it is.
    """
    written = [_placeholder(processor, one) if isinstance(one, Item) else one for one in parts]
    text = ["".join(written)] if all(isinstance(one, str) for one in written) else [written]  # type: ignore[arg-type]
    made = processor(text=text, text_kwargs=dict(ASKED), **_media([one for one in parts if isinstance(one, Item)]))
    ids = np.asarray(made["input_ids"][0], dtype=np.int64)
    items: list[Item] = []
    for placed in made.get("text_replacement_offsets", [[]])[0]:
        modality = Modality[placed["type"].upper()]
        spans = _spans(processor, made, ids, placed)
        number = sum(item.modality is modality for item in items)
        before, tokens = sum(item.token_count for item in items), sum(map(len, spans))
        side = getattr(processor, TILED.get(type(processor).__name__, ""), 1)
        feature = _feature(processor, made, modality, number, slice(before // side, (before + tokens) // side))
        grid = f"{placed['type']}_grid_thw"
        fields = {grid: tuple(_lists(made[grid])[number])} if grid in made else {}
        items.append(Item(modality=modality, spans=spans, feature=feature, fields=fields))
    return ids, items


def propose_ngram(input_ids: NDArray[np.int64], longest: int, count: int) -> list[int]:
    """`PromptLookupCandidateGenerator`, which has no shortest match and does not know media."""
    length = len(input_ids)
    generator = named("generation.candidate_generator:PromptLookupCandidateGenerator")(
        num_output_tokens=count, max_matching_ngram_size=longest, max_length=length + count + 1
    )
    candidates, _ = generator.get_candidates(torch.from_numpy(input_ids)[None])
    proposals: list[int] = candidates[0, length:].tolist()
    return proposals


def _placeholder(processor: Any, item: Item) -> str:
    """What stands for a medium in a text; nothing where the processor has no token for it."""
    return getattr(processor, f"{item.modality.name.lower()}_token", None) or ""


def _media(items: Sequence[Item]) -> dict[str, Any]:
    """Raw media as arguments of a processor."""
    given: dict[str, Any] = {}
    for item in items:
        match item.modality:
            case Modality.IMAGE:
                given.setdefault("images", []).append(item.feature)
                given["images_kwargs"] = {"return_tensors": "pt"}
            case Modality.AUDIO:
                given.setdefault("audio", []).append(item.feature)
                given["audio_kwargs"] = {"sampling_rate": item.fields["sampling_rate"]}
            case Modality.VIDEO:
                frames = len(item.feature)
                about = {"fps": item.fields["fps"], "total_num_frames": frames, "frames_indices": list(range(frames))}
                given.setdefault("videos", []).append(item.feature)
                given.setdefault("videos_kwargs", {"do_sample_frames": False, "return_tensors": "pt", "video_metadata": []})
                given["videos_kwargs"]["video_metadata"].append(about)
    return given


def _spans(processor: Any, made: Mapping[str, Any], ids: NDArray[np.int64], placed: Mapping[str, Any]) -> tuple[Span, ...]:
    """The tokens that stand for rows among those that were written for a medium.

    The first of `image_token_ids` stands for rows; the others are markers and breaks. A video may be written as pictures.
    """
    first, stop = placed["new_span"]
    filled = {getattr(processor, f"{kind}_token_ids")[0] for kind in ("image", "video", "audio")}
    places = [
        place
        for place, (start, end) in enumerate(made["offset_mapping"][0])
        if first <= start and end <= stop and int(ids[place]) in filled
    ]
    cuts = [0, *(n for n, (one, other) in enumerate(pairwise(places), 1) if other != one + 1), len(places)]
    return tuple(Span(places[start], places[end - 1]) for start, end in pairwise(cuts) if end > start)


def _feature(processor: Any, made: Mapping[str, Any], modality: Modality, number: int, tiles: slice) -> torch.Tensor:
    """The rows of the medium of this number among those of its modality."""
    grid = f"{modality.name.lower()}_grid_thw"
    if grid in made:
        return torch.split(torch.as_tensor(made[ROWS[modality]]), [int(np.prod(one)) for one in _lists(made[grid])])[number]
    family = type(processor).__name__
    if family in TILED:
        rows = made["pixel_values"]
        if TILED[family] == "image_seq_len":  # for each prompt its tiles, and of SmolVLM for each video its frames
            rows = [tile for one in rows for tile in one]
        return _tensor(rows[tiles])
    own = _tensor(made[ROWS[modality]][number])
    if modality is Modality.IMAGE and "image_sizes" in made:
        size = tuple(_lists(made["image_sizes"])[number])
        if family == "PixtralProcessor":
            return own[..., : size[0], : size[1]]
        count = named("models.llava_onevision.modeling_llava_onevision:image_size_to_num_patches")
        return own[: count(size, processor.image_processor.image_grid_pinpoints, own.shape[-1])]
    return own


def _lists(value: Any) -> list[list[int]]:
    return [[int(number) for number in one] for one in value]


def _tensor(value: Any) -> torch.Tensor:
    if isinstance(value, list) and value:
        return torch.stack([torch.as_tensor(one) for one in value])
    return torch.as_tensor(value)
