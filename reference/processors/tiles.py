"""InternVL, Gemma 3, Idefics3, SmolVLM and Pixtral.

InternVL and Idefics3 do not return how many tiles each picture has; the ids say it: markers stand around a picture of
InternVL, and the last tile of a picture of Idefics3 is labelled as the whole.

The frames of a video of InternVL or SmolVLM are pictures of one tile under the token of pictures, with text between them. A
video among the parts of a prompt is known as one. In a bundle nothing tells its frames from pictures, and so they are these.

Source: transformers 5.24, `InternVLProcessor`, `Gemma3Processor` without pan and scan, `Idefics3Processor`,
`SmolVLMProcessor`, `PixtralProcessor`.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from reference.placeholders import find_spans
from reference.processors.family import Ids, Part, filling


class InternVL:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, "image") if name in ("image", "video") else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        rows = output.get("pixel_values") if name in ("image", "video") else None
        if rows is None:
            return []
        if name == "video":
            return [Part(len(rows) * processor.image_seq_length, len(rows), rows, {})]
        counts = [len(span) for span in find_spans(ids, processor.image_token_id)]
        tiles = _tiles(counts, processor.image_seq_length, len(rows))
        return [Part(count, 1, own, {}) for count, own in zip(counts, rows.split(tiles), strict=True)]


class Gemma3:
    def filling(self, processor: Any, name: str) -> int | None:
        return int(processor.tokenizer.image_token_id) if name == "image" else None  # the processor's own is the start marker

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        rows = output.get("pixel_values", ()) if name == "image" else ()
        return [Part(processor.image_seq_length, 1, rows[number : number + 1], {}) for number in range(len(rows))]


class Idefics3:
    def label(self, processor: Any) -> int:
        """The id before a tile that is the whole picture."""
        return int(processor.global_image_token_id)

    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name == "image" else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if name != "image" or "pixel_values" not in output:
            return []
        rows, mask = output["pixel_values"], output.get("pixel_attention_mask")
        runs = find_spans(ids, processor.image_token_id)
        _tiles([len(run) for run in runs], processor.image_seq_len, rows.shape[1])
        last = [number for number, run in enumerate(runs) if ids[run.first - 1] == self.label(processor)]
        if not last or last[-1] != len(runs) - 1:
            raise ValueError("the last tile of a picture is labelled as the whole, but the last tile of the prompt is not")
        edges = [0, *(number + 1 for number in last)]
        made = []
        for first, stop in pairwise(edges):
            fields = {} if mask is None else {"pixel_attention_mask": mask[:, first:stop]}
            made.append(Part((stop - first) * processor.image_seq_len, stop - first, rows[:, first:stop], fields))
        return made


class SmolVLM(Idefics3):
    def label(self, processor: Any) -> int:
        return int(processor.tokenizer.convert_tokens_to_ids(processor.global_image_token))

    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, "image") if name in ("image", "video") else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if name != "video" or "pixel_values" not in output:
            return super().parts(name, processor, ids, output)
        rows, mask = output["pixel_values"], output.get("pixel_attention_mask")
        fields = {} if mask is None else {"pixel_attention_mask": mask}
        return [Part(rows.shape[1] * processor.image_seq_len, rows.shape[1], rows, fields)]


class Pixtral:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name == "image" else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if name != "image" or "pixel_values" not in output:
            return []
        side = processor.patch_size * processor.spatial_merge_size
        made = []
        for number, (height, width) in enumerate(output["image_sizes"].tolist()):
            own = output["pixel_values"][number : number + 1, :, :height, :width]
            fields = {"image_sizes": (height, width)}
            made.append(Part((height // side) * (width // side), height // side, own, fields))
        return made


def _tiles(counts: list[int], each: int, there_are: int) -> list[int]:
    """How many tiles each run of placeholders holds."""
    if any(count % each for count in counts) or sum(counts) != each * there_are:
        raise ValueError(f"{there_are} tiles have {each} tokens each, but the runs of placeholders have {counts}")
    return [count // each for count in counts]
