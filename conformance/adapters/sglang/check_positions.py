"""What SGLang 0.5.23 gets wrong as it counts and numbers tokens: seen without the suite."""

from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import sg

CHECKS = Checks()
fails = CHECKS.fails


def rope_index(
    ids: list[int], images: Any = None, videos: Any = None, family: str = "qwen2_vl", **more: Any
) -> list[list[int]]:
    """The times, rows and columns of ids in which 5 is a picture's, 6 a video's and 9 the start of either."""
    module = cpu.module("sglang.srt.layers.rotary_embedding.mrope_rope_index")
    arguments = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 9, "spatial_merge_size": 2} | more
    grids = [None if grid is None else torch.tensor(grid) for grid in (images, videos)]
    table, _ = module.get_rope_index(
        **arguments, model_type=family, input_ids=torch.tensor([ids]), image_grid_thw=grids[0], video_grid_thw=grids[1]
    )
    columns: list[list[int]] = table[:, 0].tolist()
    return columns


@fails("POSITIONS-08")
def no_grid_is_text() -> bool:
    """A picture whose grid is missing is numbered as text; the second of two is an index out of range."""
    alone = rope_index([1, 9, 5, 5, 5, 5, 10])
    second = error(lambda: rope_index([9, 5, 5, 5, 5, 10, 9, 5, 5, 5, 5, 10], [[1, 4, 4]]))
    return alone == [list(range(7))] * 3 and second == "IndexError"


@fails("POSITIONS-09")
def grid_of_another_size() -> bool:
    """A grid of 2 positions in a span of 4 leaves the rest as text; a larger one takes the text behind the picture."""
    smaller = rope_index([9, 5, 5, 5, 5, 10], [[1, 2, 4]])
    larger = rope_index([9, 5, 5, 10, 1], [[1, 4, 4]])
    return smaller[1] == [0, 1, 1, 3, 4, 5] and larger[1] == [0, 1, 1, 2, 2]


@fails("POSITIONS-10")
def typed_placeholder() -> bool:
    """The first placeholder of a prompt takes the first grid, also when it stands before the picture, in text."""
    return rope_index([5, 1, 9, 5, 5, 5, 5, 10], [[1, 4, 4]])[1] == [0, 0, 1, 1, 2, 3, 4, 5]


@fails("POSITIONS-11")
def pictures_that_touch() -> bool:
    """Pictures are counted by their start tokens, so that one right behind another is numbered as text."""
    return rope_index([9, 5, 5, 5, 5, 10], [[1, 2, 4], [1, 2, 4]])[2] == [0, 1, 2, 3, 4, 5]


@fails("PIPELINE-08")
def start_token_at_the_end() -> bool:
    """A prompt with a picture that ends with the start token, which a user may type, is an index out of range."""
    return error(lambda: rope_index([9, 5, 5, 5, 5, 10, 1, 9], [[1, 4, 4]])) == "IndexError"


@fails("POSITIONS-12")
def a_second_by_default() -> bool:
    """A video whose seconds are missing takes 1 second a frame."""
    ids = [9, 6, 6, 10]
    missing = rope_index(ids, None, [[2, 2, 2]], "qwen2_5_vl", tokens_per_second=4)
    return missing == rope_index(ids, None, [[2, 2, 2]], "qwen2_5_vl", tokens_per_second=4, second_per_grid_ts=[1.0])


@fails("POSITIONS-16", "POSITIONS-18")
def reply_behind_a_picture() -> bool:
    """The reply to a prompt that ends with a picture goes on behind its time, among its rows and columns."""
    table = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]])
    return bool(sg().utils.extend_mrope_positions_for_retracted_request(table, 1)[0, -1] == 2)


@fails("PLANNING-04")
def columns_lost_to_a_float() -> bool:
    """LLaVA-NeXT loses two columns of patches where 55 * (24 / 88) is a little less than 15 in floating point."""
    sg()
    shapes = cpu.module("sglang.srt.multimodal.mm_utils")
    return bool(shapes.unpad_image_shape(24, 48, (55, 88)) == (24, 14))


@fails("PLANNING-06")
def ten_tiles_for_a_small_square() -> bool:
    """InternVL cuts a picture of 100 x 100 pixels into 3 x 3 tiles and a thumbnail: the largest canvas of its shape."""
    sg()
    processor = cpu.module("sglang.srt.multimodal.processors.internvl").InternVLProcessor
    return len(processor.dynamic_preprocess(torch.zeros(3, 100, 100), image_size=14, use_thumbnail=True)) == 10


@fails("POSITIONS-24")
def text_behind_the_last_piece() -> bool:
    """Text behind a video with its recording goes on behind the last piece of the two, among the video's 7 rows."""
    frame = [6] * 7
    heard = {
        "audio_token_id": 4,
        "audio_start_token_id": 11,
        "position_id_per_seconds": 4,
        "use_audio_in_video": True,
        "audio_seqlens": torch.tensor([24]),
        "second_per_grid_ts": torch.tensor([0.25]),
    }
    ids = [9, 11, *frame, 4, *frame, 4, 4, 12, 10, 1]
    rows = rope_index(ids, None, [[2, 14, 2]], "qwen3_omni_moe", **heard)[1]
    return (max(rows[:-3]), rows[-3]) == (8, 5)
