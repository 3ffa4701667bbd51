"""What the reference promises beyond the requirements: when it refuses, what it says, and a real connection."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image, ImageFile

from conformance.suite.media_cases import DAMAGED, LOSSLESS, TOO_LARGE
from conformance.world.internet import Internet
from conformance.world.picture_files import encoded, jpeg
from reference.media import MediaError
from reference.media.decoding import decode_image, to_pixels
from reference.media.fetching import fetch_media
from reference.media.policy import FetchPolicy


@pytest.mark.parametrize("name", TOO_LARGE)
def test_no_pixel_of_a_picture_beyond_the_limit_is_decoded(name: str) -> None:
    with patch.object(ImageFile.ImageFile, "load", side_effect=AssertionError), pytest.raises(MediaError, match="pixels"):
        decode_image(TOO_LARGE[name].data, max_pixels=TOO_LARGE[name].max_pixels)


def test_the_pixel_limit_of_the_process_is_left_alone() -> None:
    limit = Image.MAX_IMAGE_PIXELS
    decode_image(encoded(Image.new("L", (9, 9)), "PNG"), max_pixels=100)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_file_beyond_the_byte_limit_is_not_opened() -> None:
    with patch.object(Image, "open", side_effect=AssertionError), pytest.raises(MediaError, match="5 bytes; at most 4"):
        decode_image(b"GIF89", max_bytes=4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text", "the data are no picture of a known format; these are BMP, GIF, JPEG, PNG, TIFF, WEBP"),
        ("tiff-header-alone", "the picture cannot be decoded: its data are damaged or end early"),
        ("header-alone", "the picture cannot be decoded: its data are damaged or end early"),
        ("pixels-cut-off", "the picture cannot be decoded: its data are damaged or end early"),
    ],
)
def test_a_refusal_says_what_is_wrong(name: str, message: str) -> None:
    with pytest.raises(MediaError) as caught:
        decode_image(DAMAGED[name])
    assert str(caught.value) == message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["rgb", "rgb-interlaced", "palette", "gif", "bmp", "jpeg"])
def test_a_file_with_any_byte_changed_is_refused_or_has_pixels(name: str) -> None:
    data = jpeg(24, 16) if name == "jpeg" else LOSSLESS[name].given
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        with suppress(MediaError):
            assert decode_image(bytes(damaged), max_pixels=1 << 16).shape[2] == 3


@pytest.mark.parametrize("inks", [(0, 0, 0, 0), (255, 0, 0, 0), (0, 200, 0, 0), (0, 0, 0, 90), (10, 20, 30, 40)])
def test_a_cmyk_jpeg_is_not_inverted(inks: tuple[int, int, int, int]) -> None:
    """JPEG stores inks inverted, and says so in a marker of Adobe's. One unit of its coarsest step is 1/8: 3 is generous."""
    pixels = decode_image(encoded(Image.new("CMYK", (16, 16), inks), "JPEG", quality=100)).astype(int)
    expected = [(255 - ink) * (255 - inks[3]) / 255 for ink in inks[:3]]
    assert np.abs(pixels - expected).max() <= 3


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("1", 1, (255, 255, 255)),
        ("I", 0x1234, (0x12, 0x12, 0x12)),
        ("I;16", 0xFEDC, (0xFE, 0xFE, 0xFE)),
        ("PA", (0, 0), (255, 255, 255)),
        ("La", (0, 0), (255, 255, 255)),
        ("RGBa", (0, 0, 0, 0), (255, 255, 255)),
        ("HSV", (0, 0, 200), (200, 200, 200)),
        ("CMYK", (0, 0, 0, 255), (0, 0, 0)),
    ],
)
def test_a_picture_of_any_mode_of_pillow(mode: str, value: int, expected: tuple[int, int, int]) -> None:
    assert to_pixels(Image.new(mode, (2, 1), value)).tolist() == [[list(expected)] * 2]


@pytest.mark.parametrize(("mode", "value"), [("F", 0.5), ("LAB", (1, 2, 3)), ("I", 65536), ("I", -1)])
def test_a_picture_without_a_stated_range_is_refused(mode: str, value: float) -> None:
    with pytest.raises(MediaError, match="no stated range"):
        to_pixels(Image.new(mode, (1, 1), value))


def test_a_picture_that_is_already_open_is_turned_once_too() -> None:
    notes = Image.Exif()
    notes[0x0112] = 6
    opened = Image.open(BytesIO(encoded(Image.new("RGB", (3, 2)), "PNG", exif=notes)))
    assert to_pixels(opened).shape == (3, 2, 3)


class Cat(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.send_header("X-Host", self.headers["Host"])
        self.end_headers()
        self.wfile.write(b"cat" if self.headers["Host"].startswith("media.example:") else b"dog")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a real server on the loopback interface."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Cat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def loopback(port: int, **fields: object) -> FetchPolicy:
    return FetchPolicy(schemes=("http", "https"), ports=(port,), resolve=lambda _: ["127.0.0.1"], **fields)


def test_a_real_server_on_an_address_that_the_policy_exempts(port: int) -> None:
    policy = loopback(port, networks=("127.0.0.0/8",))
    assert fetch_media(f"http://media.example:{port}/", policy) == b"cat"


def test_a_real_server_on_loopback_is_refused_without_that(port: int) -> None:
    with pytest.raises(MediaError, match="not on the open internet"):
        fetch_media(f"http://media.example:{port}/", loopback(port))


def test_a_server_without_tls_is_no_https_server(port: int) -> None:
    with pytest.raises(MediaError, match="could not be reached"):
        fetch_media(f"https://media.example:{port}/", loopback(port, networks=("127.0.0.0/8",)))


def test_a_port_where_nobody_listens(port: int) -> None:
    policy = FetchPolicy(schemes=("http",), ports=(9,), resolve=lambda _: ["127.0.0.1"], networks=("127.0.0.0/8",))
    with pytest.raises(MediaError, match="could not be reached"):
        fetch_media("http://media.example:9/", policy)


@pytest.mark.parametrize("reference", ["http://media.example/", "file:///etc/hostname", "/etc/hostname"])
def test_without_a_policy_nothing_leaves_the_request(reference: str) -> None:
    network = Internet()
    with pytest.raises(MediaError, match="are not taken; these are: data"):
        fetch_media(reference, FetchPolicy(resolve=network.resolve, dial=network.dial))
    assert not network.dialled
