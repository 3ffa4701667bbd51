"""LLaVA and LLaVA-OneVision: pictures of one shape, or tiles filled up to the picture with the most.

How many tokens a picture has is asked of the owner's processor, in the method with which it expands a prompt.

Source: transformers 5.24, `LlavaProcessor` and `LlavaOnevisionProcessor`, given pictures in a flat list: then each is cut
into tiles as if it were alone. In a nested list all but a lone one would be shown whole.
"""

from collections.abc import Mapping
from typing import Any

from reference.processors.family import Ids, Part, filling


class Llava:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name == "image" else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        rows = output.get("pixel_values") if name == "image" else None
        if rows is None:
            return []
        counts = [processor.replace_image_token(output, number).count(processor.image_token) for number in range(len(rows))]
        return [Part(count, 1, rows[number : number + 1], {}) for number, count in enumerate(counts)]


class LlavaOnevision:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name in ("image", "video") else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if name == "video":
            return self._videos(processor, output)
        if name != "image" or "pixel_values" not in output:
            return []
        made = []
        for number, size in enumerate(output["image_sizes"].tolist()):
            count = processor.replace_image_token(output, number).count(processor.image_token)
            tiles = output["pixel_values"][number : number + 1, : _tiles(processor, size)]
            made.append(Part(count, 1, tiles, {"image_sizes": tuple(size)}))
        return made

    def _videos(self, processor: Any, output: Mapping[str, Any]) -> list[Part]:
        rows = output.get("pixel_values_videos", ())
        counts = [processor.replace_video_token(output, number).count(processor.video_token) for number in range(len(rows))]
        return [Part(count, 1, rows[number : number + 1], {}) for number, count in enumerate(counts)]


def _tiles(processor: Any, size: list[int]) -> int:
    """How many tiles a picture of this height and width has, the whole picture among them."""
    from transformers.image_processing_utils import select_best_resolution

    side = processor.image_processor.size
    height, width = select_best_resolution(tuple(size), processor.image_processor.image_grid_pinpoints)
    return 1 + int((height // side["height"]) * (width // side["width"]))
