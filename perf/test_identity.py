"""What identities cost: a picture of 1,008 by 1,008 pixels after Qwen2-VL's processor is 5,184 patches of 1,176 numbers."""

import torch
from PIL import Image

from conformance.engine import Engine
from perf.sized import Job, sized
from reference.items import Item, Modality

PATCHES, NUMBERS = 5184, 1176
GRID = {"image_grid_thw": torch.tensor([[1, 72, 72]])}


@sized("identify")
def test_identify_a_processed_picture(engine: Engine) -> Job:
    item = Item(modality=Modality.IMAGE, feature=torch.ones(PATCHES, NUMBERS, dtype=torch.bfloat16), fields=GRID)
    return lambda: engine.identify(item)


@sized("identify")
def test_identify_a_decoded_picture(engine: Engine) -> Job:
    item = Item(modality=Modality.IMAGE, feature=Image.new("RGB", (1008, 1008)))
    return lambda: engine.identify(item)


@sized("identify")
def test_identify_a_video_of_64_small_frames(engine: Engine) -> Job:
    frames = list(torch.ones(64, 3, 112, 112, dtype=torch.uint8))
    item = Item(modality=Modality.VIDEO, feature=frames, fields={"second_per_grid_ts": [0.5] * 32})
    return lambda: engine.identify(item)


@sized("combine_identities")
def test_combine_32_identities(engine: Engine) -> Job:
    identities = [bytes([n]) * 32 for n in range(32)]
    return lambda: engine.combine_identities(identities)


@sized("adopt_caller_hashes")
def test_adopt_32_hashes(engine: Engine) -> Job:
    items = [Item(modality=Modality.IMAGE, feature=torch.ones(1))] * 32
    return lambda: engine.adopt_caller_hashes(items, {Modality.IMAGE: ["deadbeefcafebabe"] * 32})


@sized("data_hash")
def test_hash_an_encoded_picture(engine: Engine) -> Job:
    return lambda: engine.data_hash(bytes(2**20))


@sized("tensor_hash")
def test_hash_the_frames_of_a_video(engine: Engine) -> Job:
    frames = list(torch.ones(64, 3, 112, 112, dtype=torch.uint8))
    return lambda: engine.tensor_hash(frames)


@sized("hash_feature")
def test_hash_a_processed_picture(engine: Engine) -> Job:
    feature = torch.ones(PATCHES, NUMBERS, dtype=torch.bfloat16)
    return lambda: engine.hash_feature(feature)
