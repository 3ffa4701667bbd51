"""Families that nobody wrote down: whatever the processor gives for a medium alone is that medium."""

from collections.abc import Mapping
from typing import Any

from reference.processors.family import Ids, Part, filling

ROWS = {
    "image": ("pixel_values", "image_patches"),
    "video": ("pixel_values_videos",),
    "audio": ("input_features", "input_values"),
}
TEXT = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")


class Whole:
    """One medium of each kind at most: how a bundle of an unknown family comes apart cannot be guessed."""

    def filling(self, processor: Any, name: str) -> int | None:
        """Where tokenizer and processor differ, the processor's own is a marker (Gemma 3)."""
        stated = filling(getattr(processor, "tokenizer", None), name)
        return filling(processor, name) if stated is None else stated

    def parts(self, name: str, processor: Any, ids: Ids, output: Mapping[str, Any]) -> list[Part]:
        found = [key for key in ROWS[name] if key in output]
        if not found:
            return []
        others = {key for keys in ROWS.values() for key in keys} | set(TEXT)
        fields = {key: value for key, value in output.items() if key not in others}
        if several := [key for key, value in fields.items() if hasattr(value, "shape") and value.shape[:1] not in ((), (1,))]:
            raise ValueError(f"an unknown family's output can be one {name}, but {several[0]} holds several")
        count = int((ids == self.filling(processor, name)).sum())
        return [Part(count, None, output[found[0]], fields)]
