"""Cases of the rules about what an identity covers."""

from typing import Any

import numpy as np
import torch
from PIL import ExifTags, Image

from conformance.cases import Pair
from reference.items import Format, Item, Modality, Span

IMAGE, VIDEO, AUDIO = Modality.IMAGE, Modality.VIDEO, Modality.AUDIO


def image(feature: Any, **fields: Any) -> Item:
    """A picture with these fields."""
    return Item(modality=IMAGE, feature=feature, fields=fields)


def video(feature: Any, **fields: Any) -> Item:
    """A video with these fields."""
    return Item(modality=VIDEO, feature=feature, fields=fields)


def images(first: Any, second: Any) -> Pair:
    """Two pictures."""
    return Pair(image(first), image(second))


def viewed(first: str, second: str) -> Pair:
    """Two tensors of equal bytes, shape and element size, and of other dtypes."""
    octets = torch.tensor([0, 0, 128, 63] * 4, dtype=torch.uint8)
    return images(octets.view(getattr(torch, first)), octets.view(getattr(torch, second)))


def shared(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in memory that other processes can map, as transport leaves it."""
    return tensor.clone().share_memory_()  # type: ignore[no-any-return, no-untyped-call]


def flipped(size: int, at: int) -> tuple[bytes, bytes]:
    """`size` bytes, and the same but for one bit of the byte at `at`."""
    data = bytearray(size)
    data[at] = 1
    return bytes(size), bytes(data)


def described(picture: Image.Image, **info: Any) -> Image.Image:
    """A copy of a picture with entries in its info."""
    picture = picture.copy()
    picture.info.update(info)
    return picture


def palette_picture(*colours: int) -> Image.Image:
    """Four by four pixels of two colours."""
    picture = Image.frombytes("P", (4, 4), bytes([0, 1] * 8))
    picture.putpalette(colours)
    return picture


def named(picture: Image.Image, name: str) -> Image.Image:
    """A copy of a picture with a name in its EXIF data."""
    picture = picture.copy()
    picture.getexif()[ExifTags.Base.ImageID] = name
    return picture


RAMP = torch.arange(24.0).reshape(4, 6)
FLAT = torch.arange(6.0)
SHORT, LONG = FLAT[:2], FLAT[2:]
ARRAY = np.arange(24, dtype=np.float32).reshape(4, 6)
READ_ONLY = ARRAY.copy()
READ_ONLY.flags.writeable = False
BUFFER = bytes(n % 251 for n in range(3000))
PICTURE = Image.frombytes("RGB", (30, 10), BUFFER[:900])
OTHER_PICTURE = Image.frombytes("RGB", (30, 10), BUFFER[900:1800])
RED_BLUE = palette_picture(255, 0, 0, 0, 0, 255)
GREEN_BLACK = palette_picture(0, 255, 0, 0, 0, 0)

SPECIMEN = image(RAMP)
LIST_SPECIMEN = image([SHORT, LONG], size={"height": 2, "width": 3})

SAME_CONTENT = {
    "copy": images(RAMP, RAMP.clone()),
    "column-major": images(RAMP, RAMP.T.contiguous().T),
    "every-second-row": images(RAMP[::2].clone(), RAMP[::2]),
    "part-of-a-storage": images(RAMP[1:3].clone(), RAMP[1:3]),
    "one-row-repeated": images(RAMP[:1].repeat(3, 1), RAMP[:1].expand(3, 6)),
    "requires-grad": images(RAMP, RAMP.clone().requires_grad_()),
    "bfloat16-transposed": images(RAMP.bfloat16().T.contiguous(), RAMP.bfloat16().T),
    "array-copy": images(ARRAY, ARRAY.copy()),
    "array-column-major": images(ARRAY, np.asfortranarray(ARRAY)),
    "array-backwards": images(ARRAY[::-1].copy(), ARRAY[::-1]),
    "array-read-only": images(ARRAY, READ_ONLY),
    "list-of-copies": images([SHORT, LONG], [SHORT.clone(), LONG.clone()]),
    "list-partly-in-shared-memory": images([SHORT, LONG], [shared(SHORT), LONG]),
    "list-partly-in-shared-memory-at-its-end": images([SHORT, LONG], [SHORT, shared(LONG)]),
    "embedding-copy": Pair(Item(modality=IMAGE, embedding=RAMP), Item(modality=IMAGE, embedding=RAMP.clone())),
    "picture-copy": images(PICTURE, PICTURE.copy()),
}

BYTE_ORDERS = {
    "float32": images(ARRAY, ARRAY.astype(">f4")),
    "int16": images(np.arange(6, dtype=np.int16), np.arange(6, dtype=">i2")),
}

BYTES = {
    "first": images(*flipped(70_000, 0)),
    "at-760": images(*flipped(70_000, 760)),
    "at-65537": images(*flipped(70_000, 65_537)),
    "last": images(*flipped(70_000, 69_999)),
    "last-of-a-tensor": images(*(torch.tensor(list(data[-2000:]), dtype=torch.uint8) for data in flipped(70_000, 69_999))),
    "last-of-a-list": images([SHORT, LONG], [SHORT, LONG + torch.tensor([0, 0, 0, 1.0])]),
    "last-of-an-array": images(ARRAY, ARRAY + np.eye(4, 6, 2, dtype=np.float32)),
    "last-pixel": images(*(Image.frombytes("L", (100, 30), data) for data in flipped(3000, 2999))),
    "one-more": images(bytes(64), bytes(65)),
}

SHAPES = {
    "4x6-or-6x4": images(RAMP, RAMP.reshape(6, 4)),
    "flat-or-2x3": images(FLAT, FLAT.reshape(2, 3)),
    "row-or-column": images(FLAT.reshape(1, 6), FLAT.reshape(6, 1)),
    "one-element-or-no-dimensions": images(torch.tensor([1.5]), torch.tensor(1.5)),
    "two-kinds-of-empty": images(torch.empty(0, 3), torch.empty(3, 0)),
    "array-4x6-or-6x4": images(ARRAY, ARRAY.reshape(6, 4)),
    "in-a-list": images([RAMP, FLAT], [RAMP.reshape(6, 4), FLAT]),
}

DTYPES = {
    "float32-or-int32": viewed("float32", "int32"),
    "bfloat16-or-float16": viewed("bfloat16", "float16"),
    "float8-e4m3-or-e5m2": viewed("float8_e4m3fn", "float8_e5m2"),
    "int64-or-uint64": viewed("int64", "uint64"),
    "bool-or-uint8": images(torch.tensor([True, False]), torch.tensor([1, 0], dtype=torch.uint8)),
    "array-float32-or-int32": images(ARRAY, ARRAY.view(np.int32)),
}

VALUES = {
    "zero-or-minus-zero": images(torch.tensor([0.0]), torch.tensor([-0.0])),
    "large-bfloat16": images(torch.tensor([70_000.0]).bfloat16(), torch.tensor([80_000.0]).bfloat16()),
    "small-bfloat16": images(torch.tensor([1e-30]).bfloat16(), torch.tensor([2e-30]).bfloat16()),
    "neighbouring-float64": images(np.array([1.0]), np.array([1.0 + 2.0**-50])),
    "neighbouring-int64": images(torch.tensor([2**53]), torch.tensor([2**53 + 1])),
}

FRAMING = {
    "list-or-joined": images([SHORT, LONG], FLAT),
    "joined-elsewhere": images([FLAT[:2], FLAT[2:]], [FLAT[:3], FLAT[3:]]),
    "nested-elsewhere": images([[SHORT, LONG], [FLAT]], [[SHORT], [LONG, FLAT]]),
    "once-or-twice": images([FLAT], [FLAT, FLAT]),
    "order": images([SHORT, LONG], [LONG, SHORT]),
    "with-an-empty-one": images([FLAT], [FLAT, FLAT[:0]]),
    "bytes-joined-elsewhere": images([b"ab", b"c"], [b"a", b"bc"]),
}

MODALITIES = {
    "image-or-video": Pair(image(RAMP), video(RAMP)),
    "video-or-audio": Pair(video(RAMP), Item(modality=AUDIO, feature=RAMP)),
    "embeddings": Pair(Item(modality=IMAGE, embedding=RAMP), Item(modality=AUDIO, embedding=RAMP)),
}

KINDS = {
    "feature-or-embedding": Pair(image(RAMP), Item(modality=IMAGE, embedding=RAMP)),
    "raw-or-processed": Pair(image(RAMP), Item(modality=IMAGE, feature=RAMP, format=Format.RAW)),
}

FIELDS = {
    "grid": Pair(image(RAMP, thw=torch.tensor([[1, 4, 6]])), image(RAMP, thw=torch.tensor([[1, 6, 4]]))),
    "frame-rate": Pair(video(RAMP, second_per_grid_ts=[0.5]), video(RAMP, second_per_grid_ts=[1.0])),
    "frame-time-in-a-long-video": Pair(video(RAMP, times_s=[3600.0]), video(RAMP, times_s=[3600.0001])),
    "option-of-the-second-video": Pair(video([RAMP] * 2, num_frames=[8, 8]), video([RAMP] * 2, num_frames=[8, 16])),
    "audio-of-a-video": Pair(video(RAMP, audio=SHORT), video(RAMP, audio=SHORT + 1)),
    "sampling-rate": Pair(video(RAMP, audio_sampling_rate=16_000), video(RAMP, audio_sampling_rate=8_000)),
    "there-or-not": Pair(image(RAMP, max_pixels=504), image(RAMP)),
    "other-name": Pair(image(RAMP, min_pixels=504), image(RAMP, max_pixels=504)),
    "name-runs-into-value": Pair(image(RAMP, ab="c"), image(RAMP, a="bc")),
    "nested": Pair(image(RAMP, size={"height": 2, "width": 3}), image(RAMP, size={"height": 3, "width": 2})),
    "true-or-one": Pair(image(RAMP, crop=True), image(RAMP, crop=1)),
    "number-or-text": Pair(image(RAMP, crop=1), image(RAMP, crop="1")),
    "list-or-its-text": Pair(image(RAMP, tiles=["a", "b"]), image(RAMP, tiles="['a', 'b']")),
    "beyond-64-bits": Pair(image(RAMP, seed=2**64), image(RAMP, seed=0)),
}

FIELD_ORDERS = {
    "fields": Pair(image(RAMP, a=1, b=2), image(RAMP, b=2, a=1)),
    "nested": Pair(image(RAMP, size={"height": 2, "width": 3}), image(RAMP, size={"width": 3, "height": 2})),
}

PICTURES = {
    "30x100-or-100x30": images(Image.frombytes("L", (30, 100), BUFFER), Image.frombytes("L", (100, 30), BUFFER)),
    "one-colour-turned": images(Image.new("RGB", (30, 10), "red"), Image.new("RGB", (10, 30), "red")),
    "grey-or-palette": images(Image.frombytes("L", (4, 4), bytes([0, 1] * 8)), RED_BLUE),
    "palette": images(RED_BLUE, GREEN_BLACK),
    "transparent-colour": images(described(RED_BLUE, transparency=0), described(RED_BLUE, transparency=1)),
    "transparent-or-not": images(described(RED_BLUE, transparency=0), RED_BLUE),
    "rgb-or-rgba": images(Image.frombytes("RGB", (4, 4), BUFFER[:48]), Image.frombytes("RGBA", (4, 3), BUFFER[:48])),
    "rgba-or-cmyk": images(Image.frombytes("RGBA", (4, 3), BUFFER[:48]), Image.frombytes("CMYK", (4, 3), BUFFER[:48])),
}

NO_CONTENT = {
    "position": Pair(
        Item(modality=IMAGE, feature=RAMP, spans=(Span(0, 3),)), Item(modality=IMAGE, feature=RAMP, spans=(Span(9, 12),))
    ),
    "caller-hash": Pair(image(RAMP), Item(modality=IMAGE, feature=RAMP, caller_hash=7)),
    "identity-given": Pair(image(RAMP), Item(modality=IMAGE, feature=RAMP, identity=bytes(32))),
    "picture-metadata": images(PICTURE, described(PICTURE, dpi=(72, 72))),
    "picture-name": images(PICTURE, named(PICTURE, "holiday")),
}

SAME_LABEL = {
    "caller-hash": Pair(*(Item(modality=IMAGE, feature=one, caller_hash=7) for one in (RAMP, RAMP + 1))),
    "identity-given": Pair(*(Item(modality=IMAGE, feature=one, identity=bytes(32)) for one in (RAMP, RAMP + 1))),
    "picture-name": images(named(PICTURE, "holiday"), named(OTHER_PICTURE, "holiday")),
}

DOMAINS = {
    "option-appended": Pair(
        image(BUFFER[:64], max_long_side_pixel=504),
        image(BUFFER[:64] + b"max_long_side_pixel=" + (504).to_bytes(4, "little")),
    ),
    "text-appended": Pair(image(BUFFER[:64], detail="low"), image(BUFFER[:64] + b"detail=low")),
}

DTYPE_NAMES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip

ANYTHING = {
    **{name.replace("_", "-"): image(torch.zeros(2, 3).to(getattr(torch, name))) for name in DTYPE_NAMES},
    "no-dimensions": image(torch.tensor(1.5)),
    "no-elements": image(torch.empty(0, 3)),
    "requires-grad": image(RAMP.clone().requires_grad_()),
    "transposed": image(RAMP.T),
    "one-element-of-a-column": image(RAMP[:1, 0]),
    "array": image(ARRAY),
    "array-float16": image(ARRAY.astype(np.float16)),
    "array-without-dimensions": image(np.array(1.5)),
    "array-read-only": image(READ_ONLY),
    "list": image([SHORT, LONG]),
    "nested-list": image([[SHORT], [LONG, FLAT]]),
    "list-of-arrays": image([ARRAY, ARRAY[0]]),
    "bytes": image(BUFFER),
    "embedding": Item(modality=IMAGE, embedding=RAMP.bfloat16()),
    **{f"picture-{mode.lower()}": image(Image.new(mode, (3, 2))) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "F")},
}

REFUSED = {
    "nothing": Item(modality=IMAGE),
    "missing-element": image([RAMP, None]),
    "array-of-objects": image(np.array([object(), object()])),
    "function": image(lambda: RAMP),
    "generator": image(part for part in (RAMP,)),
}
