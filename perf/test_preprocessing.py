"""What preprocessing costs beside the work itself: pictures of 1,024 x 1,024 pixels whose results are 6 MiB."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from conformance.engine import Engine
from perf.sized import Job, sized
from reference.items import Format, Item, Modality

PIXELS = np.zeros((1024, 1024, 3), dtype=np.uint8)
PICTURE = Item(modality=Modality.IMAGE, feature=PIXELS, format=Format.RAW)
OPTIONS = {Modality.IMAGE: {"min_pixels": 3136, "max_pixels": 12_845_056}, Modality.VIDEO: {"num_frames": 32}}
RESULT = torch.zeros(5329, 1176, dtype=torch.uint8)
LIMIT_S = 60.0
WORKERS = "workers take turns as they please"


def no_work(item: Item, processor: str, options: Mapping[str, Any]) -> Any:
    """Work that takes no time."""
    return {"pixel_values": RESULT, "image_grid_thw": [1, 73, 73]}


@sized("preprocessing_key")
def test_key_of_a_picture(engine: Engine) -> Job:
    """The key of one picture: its 3 MiB are hashed."""
    return lambda: engine.preprocessing_key(PICTURE, "ImageProcessor 1", OPTIONS)


@sized("open_preprocessor", "open_preprocessor.submit", "open_preprocessor.result", uncounted=WORKERS)
def test_preprocess_a_picture_again(engine: Engine) -> Job:
    """One picture whose result is kept."""
    preprocessor = engine.open_preprocessor(no_work, 1, 1, 1 << 30)
    preprocessor.result(preprocessor.submit(PICTURE, "ImageProcessor 1", OPTIONS), LIMIT_S)
    return lambda: preprocessor.result(preprocessor.submit(PICTURE, "ImageProcessor 1", OPTIONS), LIMIT_S)


@sized("open_preprocessor", "open_preprocessor.submit", "open_preprocessor.result", uncounted=WORKERS)
def test_preprocess_a_picture_that_is_not_kept(engine: Engine) -> Job:
    """One picture whose result is too large to keep: the way through a worker and back."""
    preprocessor = engine.open_preprocessor(no_work, 1, 1, 1024)
    return lambda: preprocessor.result(preprocessor.submit(PICTURE, "ImageProcessor 1", OPTIONS), LIMIT_S)


@sized("open_preprocessor", "open_preprocessor.submit", "open_preprocessor.result", uncounted=WORKERS)
def test_preprocess_sixty_four_small_pictures(engine: Engine) -> Job:
    """64 pictures of 8 x 8 pixels at once, with 4 workers; nothing is kept."""
    preprocessor = engine.open_preprocessor(lambda item, processor, options: 0, 4, 64, 0)
    features = [np.full((8, 8, 3), number, dtype=np.uint8) for number in range(64)]
    pictures = [Item(modality=Modality.IMAGE, feature=feature, format=Format.RAW) for feature in features]
    return lambda: [
        preprocessor.result(ticket, LIMIT_S)
        for ticket in [preprocessor.submit(picture, "ImageProcessor 1", OPTIONS) for picture in pictures]
    ]


def through(engine: Engine, keys: Sequence[bytes]) -> Job:
    """One request with these keys, sent and received, again and again."""
    mirror = engine.open_mirror(64 * RESULT.nbytes)
    mirror.receive(mirror.send(keys, None, lambda key: RESULT))
    return lambda: mirror.receive(mirror.send(keys, None, lambda key: RESULT))


@sized("open_mirror", "open_mirror.send", "open_mirror.receive")
def test_send_sixteen_pictures_again(engine: Engine) -> Job:
    """16 pictures whose results the receiver keeps."""
    return through(engine, [number.to_bytes(32) for number in range(16)])


@sized("open_mirror", "open_mirror.send", "open_mirror.receive")
def test_send_more_pictures_than_are_kept(engine: Engine) -> Job:
    """128 pictures where 64 are kept: of each request the last ones stay."""
    return through(engine, [number.to_bytes(32) for number in range(128)])
