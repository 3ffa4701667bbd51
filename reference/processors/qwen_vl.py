"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: patches of all media in one tensor, told apart by their grids.

Source: transformers 5.24, `Qwen2VLProcessor`, `Qwen2_5_VLProcessor` and `Qwen3VLProcessor`. Qwen3-VL writes a time before
each step of a video, so that each step is a span of its own; in the others a video is one span.
"""

from collections.abc import Mapping
from typing import Any

from reference.processors.family import Ids, Part, filling

ROWS = {"image": "pixel_values", "video": "pixel_values_videos"}


class QwenVL:
    def filling(self, processor: Any, name: str) -> int | None:
        return filling(processor, name) if name in ROWS else None

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        if ROWS.get(name) not in output:
            return []
        grids = [tuple(grid) for grid in output[f"{name}_grid_thw"].tolist()]
        patches = [time * height * width for time, height, width in grids]
        rows = output[ROWS[name]]
        if sum(patches) != len(rows):
            raise ValueError(f"the grids {grids} have {sum(patches)} patches, but there are {len(rows)}")
        merged = processor.image_processor.merge_size**2
        runs = [time if _frames_apart(processor, name) else 1 for time, _, _ in grids]
        return [
            Part(patch // merged, run, own, {f"{name}_grid_thw": grid, **seconds})
            for patch, run, own, grid, seconds in zip(
                patches, runs, rows.split(patches), grids, _seconds(name, output, len(grids)), strict=True
            )
        ]


def _frames_apart(processor: Any, name: str) -> bool:
    return name == "video" and type(processor).__name__.startswith("Qwen3VL")


def _seconds(name: str, output: Mapping[str, Any], count: int) -> list[dict[str, float]]:
    """How long each step of a video lasts, where the processor says it (Qwen2.5-VL)."""
    stated = output.get("second_per_grid_ts") if name == "video" else None
    return [{}] * count if stated is None else [{"second_per_grid_ts": float(value)} for value in stated]
