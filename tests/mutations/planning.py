"""Mutations of `planning`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "a cap on the tokens of a frame is followed",
        "planning/qwen_vl",
        "min(self.max_video_tokens * self.factor**2, self.max_pixels // frames)",
        "self.max_pixels // frames",
        "PLANNING-42",
    ),
    Mutation(
        "a video of many frames has smaller ones",
        "planning/qwen_vl",
        "budget * self.temporal_patch_size // frames",
        "budget",
        "PLANNING-41",
    ),
    Mutation(
        "ties are rounded to even",
        "planning/qwen_vl",
        "round(size.height / factor) * factor, round",
        "int(size.height / factor + 0.5) * factor, round",
        "PLANNING-01",
    ),
    Mutation(
        "a product of k - 1e-12 counts as k",
        "planning/llava",
        "round(size.width * (rows / size.height), 7)",
        "size.width * (rows / size.height)",
        "PLANNING-04",
    ),
    Mutation(
        "a larger canvas is taken for a picture that fills half of it",
        "planning/tiles",
        "area > 0.5 * tile",
        "area > 2.0 * tile",
        "PLANNING-06",
    ),
    Mutation(
        "hops are counted after resampling",
        "planning/audio",
        "samples * self.sampling_rate, rate), self",
        "samples, 1), self",
        "PLANNING-30",
    ),
    Mutation(
        "a hop that was begun does not count for Qwen3-Omni",
        "planning/audio",
        "rate) // self.hop_length",
        "rate + self.hop_length * rate - rate) // self.hop_length",
        "PLANNING-40",
    ),
    Mutation(
        "a picture is resized as a whole time step",
        "planning/qwen_vl",
        "self._grid(1, self._video_size(self.temporal_patch_size, size))",
        "self._grid(1, self._video_size(self.temporal_patch_size * 2, size))",
        "PLANNING-33",
    ),
    Mutation(
        "crops are rounded half up",
        "planning/tiles",
        "floor(long / short + 0.5)",
        "round(long / short)",
        "PLANNING-35",
    ),
    Mutation(
        "a canvas on which the picture just fits enlarges it",
        "planning/tiles",
        "if scale >= 1]",
        "if scale > 1]",
        "PLANNING-34",
    ),
]
