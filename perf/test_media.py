"""What media cost: photos and films of 320 x 240 pixels, a minute of sound, and an hour of video to be sampled."""

import numpy as np
from PIL import Image

from conformance.engine import Engine
from conformance.protocol.media import Clip, VideoLimits
from conformance.suite.media_fetches import Fetch, encoded
from conformance.world import picture_files
from conformance.world.films import film
from conformance.world.internet import page
from conformance.world.recordings import packed, wav
from perf.sized import Job, sized

WIDTH, HEIGHT = 320, 240
PIXELS = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
BACKGROUND, LIMIT = (255, 255, 255), 1 << 20

LIMITS = VideoLimits(1 << 20, 1000, 600.0)


def a_minute(rate: int) -> bytes:
    """A minute of stereo in 16 bits."""
    return wav(packed([n * 31 % 2000 - 1000 for n in range(2 * 60 * rate)], 16), bits=16, channels=2, rate=rate)


@sized("decode_image")
def test_decode_a_turned_jpeg(engine: Engine) -> Job:
    data = picture_files.with_exif(picture_files.jpeg(WIDTH, HEIGHT), 6)
    return lambda: engine.decode_image(data, BACKGROUND, LIMIT)


@sized("decode_image")
def test_decode_a_png_with_alpha(engine: Engine) -> Job:
    data = picture_files.encoded(Image.fromarray(PIXELS), "PNG")
    return lambda: engine.decode_image(data, BACKGROUND, LIMIT)


@sized("fetch_media")
def test_fetch_a_data_uri(engine: Engine) -> Job:
    fetch = Fetch(f"data:image/png;base64,{encoded(PIXELS.tobytes())}")
    network = fetch.network()
    return lambda: fetch.by(engine, network)


@sized("fetch_media", uncounted="the server is a thread")
def test_fetch_through_a_connection(engine: Engine) -> Job:
    fetch = Fetch("http://media.example/photo", pages={"/photo": page(PIXELS.tobytes())})
    network = fetch.network()
    return lambda: fetch.by(engine, network)


@sized("sample_frames")
def test_sample_an_hour_of_video(engine: Engine) -> Job:
    return lambda: engine.sample_frames(Clip(0, 90_000, 25.0), 2.0, 8192)


@sized("decode_video")
def test_decode_all_of_a_hundred_frames(engine: Engine) -> Job:
    data = film(100, "mkv", width=WIDTH, height=HEIGHT).data
    return lambda: engine.decode_video(data, None, 100, LIMITS)


@sized("decode_video")
def test_decode_eight_of_a_hundred_frames(engine: Engine) -> Job:
    data = film(100, "mkv", width=WIDTH, height=HEIGHT).data
    return lambda: engine.decode_video(data, None, 8, LIMITS)


@sized("decode_audio")
def test_decode_a_minute_at_its_own_rate(engine: Engine) -> Job:
    data = a_minute(16_000)
    return lambda: engine.decode_audio(data, 16_000, 600.0)


@sized("decode_audio")
def test_decode_a_minute_of_a_disc(engine: Engine) -> Job:
    data = a_minute(44_100)
    return lambda: engine.decode_audio(data, 16_000, 600.0)
