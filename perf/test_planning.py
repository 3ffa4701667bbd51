"""What planning costs: one picture, video or recording of a usual size."""

from conformance.engine import Engine
from conformance.world import families as known
from perf.sized import Job, sized
from reference.items import Size

PHOTO = Size(3_024, 4_032)


@sized("count_image_tokens")
def test_a_photo_for_qwen(engine: Engine) -> Job:
    return lambda: engine.count_image_tokens(known.QWEN2_VL.name, known.QWEN2_VL.settings, PHOTO)


@sized("count_image_tokens")
def test_a_photo_on_one_of_36_canvases(engine: Engine) -> Job:
    return lambda: engine.count_image_tokens(known.LLAVA_ONEVISION.name, known.LLAVA_ONEVISION.settings, PHOTO)


@sized("count_image_tokens")
def test_a_photo_in_tiles(engine: Engine) -> Job:
    return lambda: engine.count_image_tokens(known.INTERNVL.name, known.INTERNVL.settings, PHOTO)


@sized("image_grid")
def test_the_grid_of_a_photo(engine: Engine) -> Job:
    return lambda: engine.image_grid(known.QWEN2_VL.name, known.QWEN2_VL.settings, PHOTO)


@sized("count_video_tokens")
def test_a_video_of_a_minute(engine: Engine) -> Job:
    return lambda: engine.count_video_tokens(known.QWEN3_VL_VIDEO.name, known.QWEN3_VL_VIDEO.settings, 120, Size(720, 1_280))


@sized("video_grid")
def test_the_grid_of_a_video_of_a_minute(engine: Engine) -> Job:
    return lambda: engine.video_grid(known.QWEN3_VL_VIDEO.name, known.QWEN3_VL_VIDEO.settings, 120, Size(720, 1_280))


@sized("count_audio_tokens")
def test_a_recording_of_half_a_minute(engine: Engine) -> Job:
    return lambda: engine.count_audio_tokens(known.QWEN2_AUDIO.name, known.QWEN2_AUDIO.settings, 30 * 44_100, 44_100)
