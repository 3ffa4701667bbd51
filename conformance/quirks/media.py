"""Ways in which engines have decoded pictures wrongly."""

from io import BytesIO
from math import isqrt
from unittest.mock import patch

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from conformance.quirk import quirk
from reference.media import MediaError
from reference.media import decoding as right
from reference.media.decoding import Colour, Pixels

UNTURN = {6: 8, 8: 6}
"""Of the eight orientations, those whose turn another one takes back."""


@quirk(
    "blue-first",
    replaces="decode_image",
    bugs=(),
    caught_by=("MEDIA-01", "MEDIA-02", "MEDIA-05", "MEDIA-06", "MEDIA-07", "MEDIA-08"),
)
def blue_first(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Channels come in the order of OpenCV: blue, green, red."""
    return right.decode_image(data, background, max_pixels)[..., ::-1]


@quirk("few-bits-unscaled", replaces="decode_image", bugs=(), caught_by=("MEDIA-01", "MEDIA-05"))
def few_bits_unscaled(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The samples of a grey PNG of one or two bits are taken as they are: white has the value 1 or 3."""
    pixels = right.decode_image(data, background, max_pixels)
    is_shallow = data.startswith(b"\x89PNG") and data[24] < 8 and data[25] == 0
    return pixels // (255 // (2 ** data[24] - 1)) if is_shallow else pixels


@quirk(
    "axis-guessed",
    replaces="decode_image",
    bugs=("idefics3-1x1-layout-guess", "image-height-1"),
    caught_by=("MEDIA-01", "MEDIA-02", "MEDIA-03", "MEDIA-05", "MEDIA-06", "MEDIA-07", "MEDIA-08", "MEDIA-12"),
)
def axis_guessed(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A first axis of 1 or 3 is taken for the channels, so that a picture of so few rows is turned inside out."""
    pixels = right.decode_image(data, background, max_pixels)
    if pixels.shape[0] not in (1, 3):
        return pixels
    return np.broadcast_to(np.moveaxis(pixels, 0, -1), (*pixels.shape[1:], 3))


@quirk(
    "tiny-pictures-abort",
    replaces="decode_image",
    bugs=("llamacpp-tiny-image-assert",),
    caught_by=("MEDIA-01", "MEDIA-02", "MEDIA-04", "MEDIA-05", "MEDIA-06", "MEDIA-07", "MEDIA-08", "MEDIA-12"),
)
def tiny_abort(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A picture of less than two pixels a side meets an assertion of the resizing that follows."""
    pixels = right.decode_image(data, background, max_pixels)
    assert min(pixels.shape[:2]) >= 2
    return pixels


@quirk("exif-ignored", replaces="decode_image", bugs=("M04", "exif-orientation-ignored"), caught_by=("MEDIA-03",))
def exif_ignored(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Pixels stay as they were stored, whatever the orientation."""
    return _turn(right.decode_image(data, background, max_pixels), UNTURN.get(_tag(data), _tag(data)))


@quirk("exif-of-jpeg-only", replaces="decode_image", bugs=("M04",), caught_by=("MEDIA-03",))
def exif_of_jpeg_only(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Only one of several paths turns: a PNG with an orientation stays as it was stored."""
    return (
        exif_ignored(data, background, max_pixels) if data[1:4] == b"PNG" else right.decode_image(data, background, max_pixels)
    )


@quirk("turned-twice", replaces="decode_image", bugs=("M04",), caught_by=("MEDIA-03",))
def turned_twice(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The tag is read before the decoder runs, which turns a TIFF by itself; then the picture is turned again."""
    pixels = right.decode_image(data, background, max_pixels)
    return _turn(pixels, _tag(data)) if data[:2] in (b"II", b"MM") else pixels


@quirk("mirrors-ignored", replaces="decode_image", bugs=("exif-orientation-ignored",), caught_by=("MEDIA-03",))
def mirrors_ignored(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Only the turns of a camera are known, 3, 6 and 8; a mirrored picture stays as it was stored."""
    is_mirrored = _tag(data) in (2, 4, 5, 7)
    return (exif_ignored if is_mirrored else right.decode_image)(data, background, max_pixels)


@quirk("alpha-dropped", replaces="decode_image", bugs=("M05",), caught_by=("MEDIA-04", "MEDIA-05", "MEDIA-06"))
def alpha_dropped(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The picture is converted to RGB, and shows what was hidden under its transparent pixels."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    return np.array(picture.convert("RGBA").convert("RGB")) if picture.has_transparency_data else pixels


@quirk("transparency-by-mode", replaces="decode_image", bugs=("M05",), caught_by=("MEDIA-04", "MEDIA-05", "MEDIA-06"))
def transparency_by_mode(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Only the modes RGBA and LA are composited; a palette or a single colour that is transparent is not looked for."""
    has_channel = _opened(data).mode in ("RGBA", "LA")
    return (right.decode_image if has_channel else alpha_dropped)(data, background, max_pixels)


@quirk("transparent-zero-is-none", replaces="decode_image", bugs=("M05",), caught_by=("MEDIA-04", "MEDIA-05"))
def zero_is_none(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The transparent entry or grey is looked for with `if`, so that number 0 counts as none."""
    is_zero = _opened(data).info.get("transparency") == 0
    return (alpha_dropped if is_zero else right.decode_image)(data, background, max_pixels)


@quirk("black-behind", replaces="decode_image", bugs=(), caught_by=("MEDIA-05", "MEDIA-06"))
def black_behind(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Colours are multiplied with their opacity and nothing is added: the background is black."""
    return right.decode_image(data, (0, 0, 0), max_pixels)


@quirk("alpha-is-a-switch", replaces="decode_image", bugs=(), caught_by=("MEDIA-06",))
def alpha_is_a_switch(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A pixel is either there or not: what is less than half opaque is background, the rest is colour."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    if not picture.has_transparency_data or picture.mode.startswith("I"):
        return pixels
    with_alpha = np.array(picture.convert("RGBA"))
    opaque = with_alpha[..., 3:] > 127
    mixed = (with_alpha[..., 3:] > 0) & (with_alpha[..., 3:] < 255)
    return np.where(mixed, np.where(opaque, with_alpha[..., :3], np.array(background, dtype=np.uint8)), pixels)


@quirk("sixteen-bits-cut-off", replaces="decode_image", bugs=("M06",), caught_by=("MEDIA-07",))
def sixteen_bits_cut_off(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Grey of 16 bits is cut off at 255, and nearly all of it is white."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    if not picture.mode.startswith("I") or picture.has_transparency_data:
        return pixels
    return np.repeat(np.array(picture).clip(0, 255).astype(np.uint8)[..., None], 3, axis=-1)


@quirk("inks-are-lights", replaces="decode_image", bugs=(), caught_by=("MEDIA-08",))
def inks_are_lights(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The first three of four channels are taken for red, green and blue: paper is black."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    return np.array(picture)[..., :3] if picture.mode == "CMYK" else pixels


@quirk("stored-inks-are-taken-as-they-are", replaces="decode_image", bugs=(), caught_by=("MEDIA-08",))
def inks_of_adobe(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Nobody knows that Adobe's programs store in a JPEG how much ink is missing: its pictures come as negatives."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    if picture.format != "JPEG" or picture.mode != "CMYK":
        return pixels
    return right.to_pixels(Image.fromarray(255 - np.array(picture), "CMYK"), background)


@quirk("cut-off-pictures-filled", replaces="decode_image", bugs=("M03",), caught_by=("MEDIA-09", "MEDIA-10"))
def cut_off_filled(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Pillow is told to put up with data that end early; what is missing is grey or black."""
    with patch.object(ImageFile, "LOAD_TRUNCATED_IMAGES", True):
        return pillow_alone(data, background, max_pixels)


@quirk(
    "damage-is-an-accident", replaces="decode_image", bugs=("M03",), caught_by=("MEDIA-09", "MEDIA-10", "MEDIA-11", "MEDIA-13")
)
def damage_is_an_accident(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A decoder that fails returns None, and the next step stumbles over it."""
    try:
        return right.decode_image(data, background, max_pixels)
    except MediaError:
        raise AttributeError("'NoneType' object has no attribute 'shape'") from None


@quirk("short-pictures-filled", replaces="decode_image", bugs=(), caught_by=("MEDIA-10",))
def pillow_alone(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """Whatever Pillow decodes is taken: of a PNG with too few rows the rest is black."""
    try:
        return right.decode_image(data, background, max_pixels)
    except MediaError:
        picture = _opened(data)
        right.check_size(picture, max_pixels)
        return right.to_pixels(picture, background)


@quirk("no-pixel-limit", replaces="decode_image", bugs=("S01", "image-decompression-bomb"), caught_by=("MEDIA-11",))
def no_pixel_limit(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The size is looked at after the picture was decoded, when it is scaled down."""
    return right.decode_image(data, background, 1 << 28)


@quirk("limit-for-png-only", replaces="decode_image", bugs=("image-decompression-bomb",), caught_by=("MEDIA-11",))
def limit_for_png_only(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The header is read by hand, of one format alone."""
    return right.decode_image(data, background, max_pixels if data.startswith(b"\x89PNG") else 1 << 28)


@quirk("limit-of-a-side", replaces="decode_image", bugs=(), caught_by=("MEDIA-12",))
def limit_of_a_side(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A side must not exceed the square root of the limit, so that a long line is refused."""
    pixels = right.decode_image(data, background, max_pixels)
    if max(pixels.shape[:2]) > isqrt(max_pixels):
        raise MediaError("a side of the picture is too long")
    return pixels


@quirk("limit-is-exclusive", replaces="decode_image", bugs=(), caught_by=("MEDIA-12",))
def limit_is_exclusive(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """A picture of exactly as many pixels as the limit is refused."""
    return right.decode_image(data, background, max_pixels - 1)


@quirk("unreadable-is-an-oserror", replaces="decode_image", bugs=("M01",), caught_by=("MEDIA-13",))
def unreadable_is_an_oserror(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The decoder's own error leaves the engine: an OSError, that a server answers with 500, with an address in its text."""
    try:
        return right.decode_image(data, background, max_pixels)
    except MediaError:
        raise UnidentifiedImageError(f"cannot identify image file {BytesIO(data)!r}") from None


@quirk("address-in-the-refusal", replaces="decode_image", bugs=(), caught_by=("MEDIA-13",))
def address_in_the_refusal(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The client's error quotes the decoder's, with the address of a buffer: half of what it takes to aim at it."""
    try:
        return right.decode_image(data, background, max_pixels)
    except MediaError:
        raise ValueError(f"cannot identify image file {BytesIO(data)!r}") from None


@quirk("last-frame", replaces="decode_image", bugs=(), caught_by=("MEDIA-14",))
def last_frame(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """All frames of an animation are decoded onto one canvas; what stays is the last."""
    pixels = right.decode_image(data, background, max_pixels)
    picture = Image.open(BytesIO(data))
    frames = getattr(picture, "n_frames", 1)
    if frames == 1:
        return pixels
    picture.seek(frames - 1)
    return np.array(picture.convert("RGB"))


@quirk("last-picture-wins", replaces="decode_image", bugs=(), caught_by=("MEDIA-15",))
def last_picture_wins(data: bytes, background: Colour, max_pixels: int) -> Pixels:
    """The start of a picture is searched for from the end, so that one behind the picture takes its place."""
    start = max(data.rfind(signature) for signature in (b"\x89PNG\r\n", b"\xff\xd8\xff"))
    return right.decode_image(data[max(start, 0) :], background, max_pixels)


def _opened(data: bytes) -> Image.Image:
    """A picture as Pillow opens it, or a MediaError."""
    try:
        picture = Image.open(BytesIO(data), formats=right.FORMATS)
        picture.load()
    except Exception:
        raise MediaError("the picture cannot be decoded") from None
    return picture


def _tag(data: bytes) -> int:
    """The orientation that a file asks for, before its pixels are loaded."""
    try:
        return int(Image.open(BytesIO(data)).getexif().get(right.ORIENTATION, 1))
    except Exception:
        return 1


def _turn(pixels: Pixels, orientation: int) -> Pixels:
    turn = right.TURNS.get(orientation)
    return pixels if turn is None else np.array(Image.fromarray(pixels).transpose(turn))
