"""What media cost: photos of 320 x 240 pixels, one of them through a connection, and an hour of video."""

import numpy as np
from PIL import Image

from conformance.engine import Engine
from conformance.protocol.media import Clip
from conformance.suite.media_fetches import Fetch, encoded
from conformance.world import picture_files
from conformance.world.internet import page
from perf.sized import Job, sized

WIDTH, HEIGHT = 320, 240
PIXELS = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
BACKGROUND, LIMIT = (255, 255, 255), 1 << 20


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


@sized("fetch_media")
def test_fetch_through_a_connection(engine: Engine) -> Job:
    fetch = Fetch("http://media.example/photo", pages={"/photo": page(PIXELS.tobytes())})
    network = fetch.network()
    return lambda: fetch.by(engine, network)


@sized("sample_frames")
def test_sample_an_hour_of_video(engine: Engine) -> Job:
    return lambda: engine.sample_frames(Clip(0, 90_000, 25.0), 2.0, 8192)
