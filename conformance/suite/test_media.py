"""MEDIA: from bytes to upright pixels, and from a reference to bytes."""

import numpy as np

from conformance.cases import Exact, Pair
from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import media as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite import media_cases as cases
from conformance.suite.media_cases import BACKGROUND, Limited, Tagged, Veiled
from conformance.suite.media_checks import is_told_as_the_clients_fault, lies_between

ENOUGH = 1 << 20
ROW = "row {}".format


@requirement("MEDIA-01", needs="decode_image", cases=cases.LOSSLESS)
def test_a_lossless_picture_has_its_own_pixels(engine: Engine, case: Exact) -> None:
    """The pixels of a lossless file MUST be those that were stored, as RGB, whatever the format and the depth."""
    equal(engine.decode_image(case.given, BACKGROUND, ENOUGH), case.expected, "the pixels", where=ROW)


@requirement(
    "MEDIA-02",
    needs="decode_image",
    cases=cases.THIN,
    bugs=("idefics3-1x1-layout-guess", "image-height-1", "llamacpp-tiny-image-assert"),
)
def test_a_thin_picture_keeps_its_shape(engine: Engine, case: Exact) -> None:
    """A picture of 1 or 3 rows or columns MUST keep its shape [height, width, 3]; no axis is guessed from its length."""
    equal(engine.decode_image(case.given, BACKGROUND, ENOUGH), case.expected, "the pixels", where=ROW)


@requirement("MEDIA-03", needs="decode_image", cases=cases.ORIENTED, bugs=("M04", "exif-orientation-ignored"))
def test_a_picture_is_turned_once_as_its_exif_data_ask(engine: Engine, case: Tagged) -> None:
    """A picture with an EXIF orientation MUST be turned upright exactly once, in every format that has such data.

    A value that is none of the eight asks for nothing.
    """
    plain = engine.decode_image(case.plain, BACKGROUND, ENOUGH)
    expected = oracle.upright(plain, case.orientation)
    equal(engine.decode_image(case.tagged, BACKGROUND, ENOUGH), expected, "the pixels", where=ROW)


@requirement("MEDIA-04", needs="decode_image", cases=cases.HIDING, bugs=("M05",))
def test_what_lies_under_a_transparent_pixel_is_never_seen(engine: Engine, case: Pair) -> None:
    """The stored colour of a fully transparent pixel MUST NOT change what is decoded, whatever makes it transparent."""
    one, other = (engine.decode_image(data, BACKGROUND, ENOUGH) for data in case)
    equal(other, one, "the pixels with another colour under the transparent one", where=ROW)


def _on_the_background(engine: Engine, case: Veiled) -> None:
    lowest, highest = oracle.composited(case.colours, case.alphas, BACKGROUND)
    lies_between(engine.decode_image(case.data, BACKGROUND, ENOUGH), lowest, highest, "the pixels on the background")


def _as_they_are_where_opaque(engine: Engine, case: Veiled) -> None:
    observed = engine.decode_image(case.data, BACKGROUND, ENOUGH)
    opaque = case.alphas[..., None] == 255
    lies_between(observed, np.where(opaque, case.colours, 0), np.where(opaque, case.colours, 255), "the opaque pixels")


BACKGROUNDS = {"caller": _on_the_background, "engine": _as_they_are_where_opaque}


@requirement("MEDIA-05", needs="decode_image", cases=cases.VEILED, bugs=("M05",))
def test_transparent_pixels_show_the_background(engine: Engine, case: Veiled) -> None:
    """A transparent pixel MUST have the colour of the background, and an opaque one its own.

    Of an engine that chooses the background (the trait `backgrounds="engine"`) only the opaque ones are known.
    """
    BACKGROUNDS[engine.traits.backgrounds](engine, case)


@requirement("MEDIA-06", needs="decode_image", cases=cases.GLASS)
def test_half_transparent_pixels_are_mixed_with_the_background(engine: Engine, case: Veiled) -> None:
    """A pixel of the opacity a MUST be a parts of its colour and 255 - a of the background, rounded either way.

    Of an engine that chooses the background (the trait `backgrounds="engine"`) only the opaque ones are known.
    """
    BACKGROUNDS[engine.traits.backgrounds](engine, case)


@requirement("MEDIA-07", needs="decode_image", cases=cases.SIXTEEN_BITS, bugs=("M06",))
def test_sixteen_bits_are_scaled_to_eight(engine: Engine, case: Exact) -> None:
    """A sample of 16 bits MUST be scaled to 8: the value times 255 / 65535, rounded either way, and never cut off."""
    lowest, highest = case.expected
    lies_between(engine.decode_image(case.given, BACKGROUND, ENOUGH), lowest, highest, "the pixels")


@requirement("MEDIA-08", needs="decode_image", cases=cases.CMYK)
def test_inks_become_the_colours_they_print(engine: Engine, case: Exact) -> None:
    """A CMYK picture without a profile MUST become RGB: no ink is white, each full ink takes its colour away."""
    equal(engine.decode_image(case.given, BACKGROUND, ENOUGH), case.expected, "the pixels", where=ROW)


@requirement("MEDIA-09", needs="decode_image", cases=cases.DAMAGED, bugs=("M01", "M02", "M03"))
def test_what_is_no_whole_picture_is_refused(engine: Engine, case: bytes) -> None:
    """Data that are no picture, are damaged or end early MUST be refused, and never give pixels."""
    refuses(lambda: engine.decode_image(case, BACKGROUND, ENOUGH), "a picture that is none, or not whole")


@requirement("MEDIA-10", needs="decode_image", cases=cases.SHORT, level=SHOULD)
def test_a_header_that_promises_too_much_is_refused(engine: Engine, case: bytes) -> None:
    """A picture whose header promises more pixels than its data hold SHOULD be refused, not filled up.

    Pillow fills a PNG up with black when its compressed stream is well-formed but short.
    """
    refuses(lambda: engine.decode_image(case, BACKGROUND, ENOUGH), "a picture with fewer pixels than its header promises")


@requirement("MEDIA-11", needs="decode_image", cases=cases.TOO_LARGE, bugs=("S01", "image-decompression-bomb"))
def test_a_picture_beyond_the_limit_is_refused(engine: Engine, case: Limited) -> None:
    """A picture whose header has more pixels than the limit MUST be refused, in every format, whatever its file's size."""
    refuses(lambda: engine.decode_image(case.data, BACKGROUND, case.max_pixels), f"more than {case.max_pixels} pixels")


@requirement("MEDIA-12", needs="decode_image", cases=cases.JUST_FITS)
def test_a_picture_of_the_limit_is_decoded(engine: Engine, case: Limited) -> None:
    """A picture of exactly as many pixels as the limit MUST be decoded: the limit is of pixels, inclusive."""
    decoded = engine.decode_image(case.data, BACKGROUND, case.max_pixels)
    equal(decoded.shape[0] * decoded.shape[1], case.max_pixels, "the number of pixels")


@requirement("MEDIA-13", needs="decode_image", cases=cases.DAMAGED | cases.SHORT, bugs=("M01", "M03"), level=SHOULD)
def test_a_refused_picture_is_told_as_the_clients_fault(engine: Engine, case: bytes) -> None:
    """The refusal of a picture SHOULD be a ValueError without a memory address: the client's fault, and not the server's.

    Servers answer 400 to a ValueError and 500 to the rest; Pillow's own errors are an OSError, and print an address.
    """
    is_told_as_the_clients_fault(lambda: engine.decode_image(case, BACKGROUND, ENOUGH))


def _the_first_frame(engine: Engine, case: Exact) -> None:
    equal(engine.decode_image(case.given, BACKGROUND, ENOUGH), case.expected, "the pixels", where=ROW)


def _no_animation(engine: Engine, case: Exact) -> None:
    refuses(lambda: engine.decode_image(case.given, BACKGROUND, ENOUGH), "an animation")


ANIMATIONS = {"first frame": _the_first_frame, "reject": _no_animation}


@requirement("MEDIA-14", needs="decode_image", cases=cases.ANIMATED)
def test_an_animation_is_its_first_frame(engine: Engine, case: Exact) -> None:
    """Of an animation the first frame MUST be decoded.

    An engine with the trait `animations="reject"` refuses it.
    """
    ANIMATIONS[engine.traits.animations](engine, case)


@requirement("MEDIA-15", needs="decode_image", cases=cases.TRAILED)
def test_what_follows_a_picture_is_not_seen(engine: Engine, case: Pair) -> None:
    """Bytes after the end of a picture MUST NOT change its pixels; they may have it refused."""
    expected = engine.decode_image(case.first, BACKGROUND, ENOUGH)
    for observed in unless_refused(lambda: engine.decode_image(case.second, BACKGROUND, ENOUGH), "a picture with a tail"):
        equal(observed, expected, "the pixels", where=ROW)
