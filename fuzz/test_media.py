"""Search for pictures, references, films and recordings that break a rule about media."""

import base64
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact, Pair
from conformance.engine import Traits
from conformance.protocol.media import Clip
from conformance.suite.media_audio_cases import Resampled, counted, exact
from conformance.suite.media_cases import SHAPES, THIN, Limited, Tagged, Veiled
from conformance.suite.media_fetches import DATA, Fetch, literal
from conformance.suite.media_video_cases import Showing
from conformance.suite.test_media_frames import Sampling
from conformance.world.films import film, uneven_film
from conformance.world.internet import PUBLIC, redirect
from conformance.world.recordings import recording
from fuzz.search import searches
from fuzz.strategies.picture_files import (
    cut_off,
    deep_greys,
    glasses,
    hidings,
    lossless,
    oriented,
    too_large,
    trailed,
)

PRIVATE = st.one_of(
    st.integers(0, 2**24 - 1).map(lambda low: str(IPv4Address(10 << 24 | low))),
    st.integers(0, 2**24 - 1).map(lambda low: str(IPv4Address(127 << 24 | low))),
    st.integers(0, 2**20 - 1).map(lambda low: str(IPv4Address(0xAC1 << 20 | low))),
    st.integers(0, 2**16 - 1).map(lambda low: str(IPv4Address(0xC0A8 << 16 | low))),
    st.integers(0, 2**16 - 1).map(lambda low: str(IPv4Address(0xA9FE << 16 | low))),
    st.integers(0, 2**28 - 1).map(lambda low: str(IPv4Address(0xE << 28 | low))),
    st.integers(0, 2**32 - 1).map(lambda low: str(IPv6Address(0xFFFF << 32 | low))),
    st.integers(0, 2**32 - 1).map(lambda low: str(IPv6Address(0x64FF9B << 96 | low))),
    st.integers(0, 2**64 - 1).map(lambda low: str(IPv6Address(0xFE80 << 112 | low))),
    st.integers(0, 2**64 - 1).map(lambda low: str(IPv6Address(0xFD << 120 | low))),
)
"""An address that is not of the open internet, or is an IPv4 address in the clothes of IPv6."""


@searches("MEDIA-01")
def test_any_lossless_picture() -> SearchStrategy[Exact]:
    return lossless()


@searches("MEDIA-02")
def test_any_thin_picture() -> SearchStrategy[Exact]:
    return st.sampled_from(sorted(THIN)).map(THIN.__getitem__) | lossless().filter(lambda case: 1 in case.expected.shape)


@searches("MEDIA-03")
def test_any_orientation() -> SearchStrategy[Tagged]:
    return oriented()


@searches("MEDIA-04")
def test_any_hidden_colours() -> SearchStrategy[Pair]:
    return hidings(SHAPES)


@searches("MEDIA-05")
def test_any_holes() -> SearchStrategy[Veiled]:
    return glasses(st.sampled_from([0, 255]))


@searches("MEDIA-06")
def test_any_opacity() -> SearchStrategy[Veiled]:
    return glasses()


@searches("MEDIA-07")
def test_any_grey_of_sixteen_bits() -> SearchStrategy[Exact]:
    return deep_greys()


@searches("MEDIA-09")
def test_any_bytes_and_any_cut() -> SearchStrategy[bytes]:
    return st.binary(max_size=200) | cut_off()


@searches("MEDIA-11")
def test_any_header_beyond_the_limit() -> SearchStrategy[Limited]:
    return too_large()


@searches("MEDIA-12")
def test_any_picture_of_the_limit() -> SearchStrategy[Limited]:
    return lossless().map(lambda case: Limited(case.given, case.expected.shape[0] * case.expected.shape[1]))


@searches("MEDIA-13")
def test_the_refusal_of_any_bytes() -> SearchStrategy[bytes]:
    return st.binary(max_size=200) | cut_off()


@searches("MEDIA-15")
def test_any_tail() -> SearchStrategy[Pair]:
    return trailed()


@searches("MEDIA-16")
def test_any_data_uri() -> SearchStrategy[Exact]:
    bodies = st.binary(min_size=1, max_size=100)
    in_base64 = bodies.map(lambda body: Exact(Fetch(f"data:;base64,{base64.b64encode(body).decode()}"), body))
    in_percents = bodies.map(lambda body: Exact(Fetch("data:," + "".join(f"%{octet:02x}" for octet in body)), body))
    return in_base64 | in_percents | st.sampled_from(sorted(DATA)).map(DATA.__getitem__)


@searches("MEDIA-19")
def test_any_address_inside() -> SearchStrategy[Fetch]:
    named = st.lists(PRIVATE, min_size=1, max_size=2).map(lambda inside: [PUBLIC, *inside])
    return PRIVATE.map(lambda address: Fetch(f"http://{literal(address)}/cat")) | named.map(
        lambda addresses: Fetch("http://media.example/cat", {"media.example": [addresses]})
    )


@searches("MEDIA-20")
def test_any_address_inside_after_a_hop() -> SearchStrategy[Fetch]:
    return PRIVATE.map(
        lambda address: Fetch("http://media.example/out", pages={"/out": redirect(f"http://{literal(address)}/cat")})
    )


@searches("MEDIA-21")
def test_any_character_that_a_url_does_not_have() -> SearchStrategy[Fetch]:
    odd = st.characters(max_codepoint=32) | st.characters(min_codepoint=127) | st.sampled_from("\\<@")
    return st.tuples(odd, st.sampled_from(["http://media{}.example/cat", "http://{}media.example/cat"])).map(
        lambda two: Fetch(two[1].format(two[0]))
    )


def samplings() -> SearchStrategy[Sampling]:
    """A clip of any length, place and rate, sampled at any rate or number; shrinks to one frame."""
    rates = st.sampled_from([1.0, 2.0, 24.0, 25.0, 30.0, 24000 / 1001, 30000 / 1001, 120.0]) | st.floats(0.01, 1000)
    clips = st.builds(Clip, st.integers(0, 1000), st.integers(1, 100_000), rates)
    return st.builds(Sampling, clips, st.none() | rates, st.integers(1, 2000))


@searches("MEDIA-32")
def test_any_clip_shows_a_frame() -> SearchStrategy[Sampling]:
    return samplings()


def leaves_room(traits: Traits, case: Sampling) -> bool:
    """Whether an engine that shows multiples of some frames can show one such multiple."""
    return min(case.max_frames, case.clip.length) >= traits.frame_multiple


@searches("MEDIA-33", asked=leaves_room)
def test_any_limit_of_frames() -> SearchStrategy[Sampling]:
    return samplings()


@searches("MEDIA-34")
def test_any_times() -> SearchStrategy[Sampling]:
    return samplings()


@searches("MEDIA-35", asked=leaves_room)
def test_any_rate() -> SearchStrategy[Sampling]:
    """Qwen2-VL shows four frames where there are as many, however short the clip: that many are asked for."""
    unbounded = samplings().filter(lambda case: case.rate is not None and 1 <= case.rate <= case.clip.fps)
    unbounded = unbounded.filter(lambda case: case.clip.length * (case.rate or 0) / case.clip.fps >= 4)
    return unbounded.map(lambda case: case._replace(max_frames=case.clip.length))


@searches("MEDIA-36")
def test_any_spread() -> SearchStrategy[Sampling]:
    return samplings()


@searches("MEDIA-37")
def test_any_rate_that_is_none() -> SearchStrategy[Sampling]:
    wrong = st.floats(max_value=0) | st.just(float("nan")) | st.just(float("inf"))
    of_the_clip = wrong.map(lambda rate: Sampling(Clip(0, 100, rate), 2.0))
    return of_the_clip | wrong.map(lambda rate: Sampling(Clip(0, 100, 25.0), rate))


def showings() -> SearchStrategy[Showing]:
    """A film without loss of up to 40 frames, at any rate of the table, sampled anyhow; shrinks to one frame."""
    rates = st.sampled_from([Fraction(25), Fraction(24), Fraction(30_000, 1001), Fraction(5), Fraction(1, 2)])
    films = st.builds(film, st.integers(1, 40), st.sampled_from(["avi", "mov", "mkv"]), rates)
    return st.builds(Showing, films, st.none() | st.sampled_from([0.5, 1.0, 2.0, 7.0, 30.0]), st.integers(1, 50))


@searches("MEDIA-38", examples=50)
def test_any_film() -> SearchStrategy[Showing]:
    return showings()


@searches("MEDIA-40", examples=50)
def test_any_film_and_the_sampler() -> SearchStrategy[Showing]:
    return showings()


@searches("MEDIA-42", examples=50)
def test_the_rate_of_any_film() -> SearchStrategy[Showing]:
    return showings()


@searches("MEDIA-43", examples=50)
def test_the_times_of_any_film() -> SearchStrategy[Showing]:
    return showings()


@searches("MEDIA-44", examples=50)
def test_any_times_of_frames() -> SearchStrategy[tuple[Showing, tuple[int, ...]]]:
    steps = st.lists(st.integers(20, 3000), min_size=1, max_size=12)
    moments = steps.map(lambda gaps: tuple(sum(gaps[:place]) for place in range(len(gaps) + 1)))
    return moments.filter(lambda at: at[-1] < 99_000).map(lambda at: (Showing(uneven_film(at, "mkv")), at))


def rows(channels: int, bits: int) -> SearchStrategy[list[list[int]]]:
    half = 1 << (bits - 1)
    return st.lists(st.lists(st.integers(-half, half - 1), min_size=channels, max_size=channels), min_size=1, max_size=40)


@searches("MEDIA-53")
def test_any_samples() -> SearchStrategy[Exact]:
    return st.sampled_from([8, 16, 24, 32]).flatmap(lambda bits: rows(1, bits).map(lambda made: exact(recording(made, bits))))


@searches("MEDIA-54")
def test_any_two_channels() -> SearchStrategy[Exact]:
    return rows(2, 16).map(lambda made: exact(recording(made)))


@searches("MEDIA-55")
def test_any_number_of_channels() -> SearchStrategy[Exact]:
    return st.sampled_from([4, 8]).flatmap(lambda channels: rows(channels, 16).map(lambda made: exact(recording(made))))


@searches("MEDIA-56")
def test_any_length_at_any_rate() -> SearchStrategy[Resampled]:
    rates = st.sampled_from([8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000]) | st.integers(4000, 100_000)
    recordings = st.builds(counted, st.integers(1, 3000), rates)
    return st.builds(Resampled, recordings, st.sampled_from([8_000, 16_000, 24_000, 48_000]))
