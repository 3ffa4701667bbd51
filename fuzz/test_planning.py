"""Search for media that break a rule about planning."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import planning as oracle
from conformance.protocol.planning import FAMILIES
from conformance.suite.planning_checks import Refused, Table, against
from conformance.world import families as known
from conformance.world.families import Family
from fuzz.search import searches
from fuzz.strategies.media_sizes import in_patches, in_tiles, of_a_fixed_number, on_a_canvas, pictures, qwen, sizes, thin
from reference.items import Size

FRAMES = st.integers(1, 100)
RATES = st.sampled_from((8_000, 11_025, 16_000, 22_050, 44_100, 48_000))
FEW = 60


@searches("PLANNING-01")
def test_any_picture_of_qwen() -> SearchStrategy[Table]:
    return pictures(qwen())


@searches("PLANNING-02")
def test_any_picture_on_a_canvas() -> SearchStrategy[Table]:
    return pictures(on_a_canvas(), thinnest=20)


@searches("PLANNING-03")
def test_any_picture_in_tiles() -> SearchStrategy[Table]:
    return pictures(in_tiles())


@searches("PLANNING-04")
def test_any_picture_in_patches() -> SearchStrategy[Table]:
    return pictures(in_patches(), thinnest=20)


@searches("PLANNING-05", examples=FEW)
def test_any_picture_of_a_fixed_number_of_tokens() -> SearchStrategy[Table]:
    return pictures(of_a_fixed_number(), thinnest=20)


@searches("PLANNING-06", examples=FEW)
def test_one_size_under_any_two_settings() -> SearchStrategy[tuple[Table, Table]]:
    def made(one: Family, other: Family, size: Size) -> tuple[Table, Table]:
        return against(oracle.image_tokens, one, (size,)), against(
            oracle.image_tokens, Family(one.name, other.settings), (size,)
        )

    return st.builds(made, qwen(), qwen(), sizes())


@searches("PLANNING-07")
def test_any_picture_that_is_too_thin() -> SearchStrategy[Refused]:
    return thin()


@searches("PLANNING-08")
def test_any_other_family() -> SearchStrategy[str]:
    return st.text(max_size=12).filter(lambda name: name not in FAMILIES)


@searches("PLANNING-10")
def test_any_grid_of_a_picture() -> SearchStrategy[Table]:
    return st.builds(lambda family, size: against(oracle.image_grid, family, (size,)), qwen(), sizes())


def videos_of_qwen2(answer: str) -> SearchStrategy[Table]:
    ask = getattr(oracle, answer)
    per_frame = qwen().map(lambda family: Family("qwen2_vl", family.settings))
    return st.builds(lambda family, frames, size: against(ask, family, (frames, size)), per_frame, FRAMES, sizes())


@searches("PLANNING-11")
def test_any_video() -> SearchStrategy[Table]:
    return videos_of_qwen2("video_tokens")


@searches("PLANNING-13")
def test_any_grid_of_a_video() -> SearchStrategy[Table]:
    return videos_of_qwen2("video_grid")


@searches("PLANNING-14")
def test_any_video_without_frames() -> SearchStrategy[Refused]:
    return st.builds(lambda family, frames, size: Refused(family, (frames, size)), qwen(), st.integers(-9, 0), sizes())


@searches("PLANNING-15")
def test_any_recording() -> SearchStrategy[Table]:
    families = st.sampled_from((known.QWEN2_AUDIO, known.WHISPER))
    lengths = st.integers(321, 1_000_000)
    return st.builds(lambda family, samples: against(oracle.audio_tokens, family, (samples, 16_000)), families, lengths)


@searches("PLANNING-16")
def test_any_recording_at_any_rate() -> SearchStrategy[Table]:
    lengths = st.integers(1_000, 3_000_000)
    ask = oracle.audio_tokens
    return st.builds(lambda samples, rate: against(ask, known.QWEN2_AUDIO, (samples, rate)), lengths, RATES)


@searches("PLANNING-17")
def test_any_short_recording() -> SearchStrategy[Refused]:
    return st.integers(1, 320).map(lambda samples: Refused(known.QWEN2_AUDIO, (samples, 16_000)))


@searches("PLANNING-18")
def test_any_recording_without_samples() -> SearchStrategy[Refused]:
    return st.builds(lambda samples, rate: Refused(known.QWEN2_AUDIO, (samples, rate)), st.integers(-9, 0), RATES)
