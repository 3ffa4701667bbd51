"""Search for media that break a rule about planning."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import planning as oracle
from conformance.protocol.planning import FAMILIES
from conformance.suite.planning_checks import Refused, Table, against
from conformance.world import families as known
from conformance.world.families import Family
from fuzz.search import searches
from fuzz.strategies import media_sizes as some
from reference.items import Size

FRAMES = st.integers(1, 100)
RATES = st.sampled_from((8_000, 11_025, 16_000, 22_050, 44_100, 48_000))
FEW = 40


@searches("PLANNING-01")
def test_any_picture_for_qwen2_vl() -> SearchStrategy[Table]:
    return some.pictures(some.qwen("qwen2_vl"))


@searches("PLANNING-02", examples=FEW)
def test_any_picture_for_qwen2_5_vl() -> SearchStrategy[Table]:
    return some.pictures(some.qwen("qwen2_5_vl"))


@searches("PLANNING-03", examples=FEW)
def test_any_picture_for_qwen3_vl() -> SearchStrategy[Table]:
    return some.pictures(some.qwen("qwen3_vl"))


@searches("PLANNING-04")
def test_any_picture_for_llava_next() -> SearchStrategy[Table]:
    return some.pictures(some.llava_next(), thinnest=20)


@searches("PLANNING-05")
def test_any_picture_for_llava_onevision() -> SearchStrategy[Table]:
    return some.pictures(some.llava_onevision(), thinnest=20)


@searches("PLANNING-06")
def test_any_picture_for_internvl() -> SearchStrategy[Table]:
    return some.pictures(some.internvl())


@searches("PLANNING-07")
def test_any_picture_for_idefics3() -> SearchStrategy[Table]:
    return some.pictures(some.idefics3("idefics3"))


@searches("PLANNING-08", examples=FEW)
def test_any_picture_for_smolvlm() -> SearchStrategy[Table]:
    return some.pictures(some.idefics3("smolvlm"))


@searches("PLANNING-09")
def test_any_picture_for_pixtral() -> SearchStrategy[Table]:
    return some.pictures(some.pixtral(), thinnest=20)


@searches("PLANNING-10", examples=FEW)
def test_any_picture_for_llava() -> SearchStrategy[Table]:
    return some.pictures(some.llava(), thinnest=20)


@searches("PLANNING-11", examples=FEW)
def test_any_picture_for_gemma3() -> SearchStrategy[Table]:
    return some.pictures(some.gemma3(), thinnest=20)


@searches("PLANNING-12")
def test_any_picture_for_deepseek_vl2() -> SearchStrategy[Table]:
    return some.pictures(some.deepseek_vl2())


@searches("PLANNING-13", examples=FEW)
def test_one_size_under_any_two_settings() -> SearchStrategy[tuple[Table, Table]]:
    def made(one: Family, other: Family, size: Size) -> tuple[Table, Table]:
        return against(oracle.image_tokens, one, (size,)), against(oracle.image_tokens, other, (size,))

    return st.builds(made, some.qwen("qwen2_vl"), some.qwen("qwen2_vl"), some.sizes())


@searches("PLANNING-14")
def test_any_picture_that_is_too_thin() -> SearchStrategy[Refused]:
    return some.thin()


@searches("PLANNING-15")
def test_any_picture_scaled_to_nothing() -> SearchStrategy[Refused]:
    short, times = st.integers(1, 9), st.integers(1_025, 4_000)
    return st.builds(lambda height, times: Refused(known.PIXTRAL, (Size(height, height * times),)), short, times)


@searches("PLANNING-16")
def test_any_other_family() -> SearchStrategy[str]:
    return st.text(max_size=12).filter(lambda name: name not in FAMILIES)


@searches("PLANNING-18")
def test_any_grid_of_a_picture() -> SearchStrategy[Table]:
    return st.builds(lambda family, size: against(oracle.image_grid, family, (size,)), some.qwen("qwen2_vl"), some.sizes())


@searches("PLANNING-19")
def test_any_video_for_qwen2_vl() -> SearchStrategy[Table]:
    ask = oracle.video_tokens
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.qwen("qwen2_vl"), FRAMES, some.sizes())


@searches("PLANNING-20", examples=FEW)
def test_any_video_for_qwen2_5_vl() -> SearchStrategy[Table]:
    ask = oracle.video_tokens
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.qwen("qwen2_5_vl"), FRAMES, some.sizes())


@searches("PLANNING-22", examples=FEW)
def test_any_video_for_llava_onevision() -> SearchStrategy[Table]:
    ask = oracle.video_tokens
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.llava_onevision(), FRAMES, some.sizes())


@searches("PLANNING-23", examples=FEW)
def test_any_video_for_internvl() -> SearchStrategy[Table]:
    ask = oracle.video_tokens
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.internvl(), FRAMES, some.sizes())


@searches("PLANNING-24")
def test_any_grid_of_a_video() -> SearchStrategy[Table]:
    ask = oracle.video_grid
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.qwen("qwen2_vl"), FRAMES, some.sizes())


@searches("PLANNING-26")
def test_any_video_without_frames() -> SearchStrategy[Refused]:
    families = some.qwen("qwen2_vl")
    return st.builds(lambda family, frames, size: Refused(family, (frames, size)), families, st.integers(-9, 0), some.sizes())


@searches("PLANNING-27")
def test_any_video_for_qwen3_vl_without_frames() -> SearchStrategy[Refused]:
    families = some.qwen("qwen3_vl")
    return st.builds(lambda family, frames, size: Refused(family, (frames, size)), families, st.integers(-9, 0), some.sizes())


@searches("PLANNING-28")
def test_any_recording_for_qwen2_audio() -> SearchStrategy[Table]:
    lengths = st.integers(321, 1_000_000)
    return lengths.map(lambda samples: against(oracle.audio_tokens, known.QWEN2_AUDIO, (samples, 16_000)))


@searches("PLANNING-29", examples=FEW)
def test_any_recording_for_whisper() -> SearchStrategy[Table]:
    lengths = st.integers(1, 1_000_000)
    return lengths.map(lambda samples: against(oracle.audio_tokens, known.WHISPER, (samples, 16_000)))


@searches("PLANNING-30")
def test_any_recording_at_any_rate() -> SearchStrategy[Table]:
    lengths = st.integers(1_000, 3_000_000)
    ask = oracle.audio_tokens
    return st.builds(lambda samples, rate: against(ask, known.QWEN2_AUDIO, (samples, rate)), lengths, RATES)


@searches("PLANNING-31")
def test_any_short_recording() -> SearchStrategy[Refused]:
    return st.integers(1, 320).map(lambda samples: Refused(known.QWEN2_AUDIO, (samples, 16_000)))


@searches("PLANNING-32")
def test_any_recording_without_samples() -> SearchStrategy[Refused]:
    return st.builds(lambda samples, rate: Refused(known.QWEN2_AUDIO, (samples, rate)), st.integers(-9, 0), RATES)


@searches("PLANNING-33")
def test_any_picture_for_glm4v() -> SearchStrategy[Table]:
    return some.pictures(some.qwen("glm4v"), thinnest=100)


@searches("PLANNING-34")
def test_any_picture_for_llama4() -> SearchStrategy[Table]:
    return some.pictures(some.llama4())


@searches("PLANNING-35")
def test_any_picture_in_crops() -> SearchStrategy[Table]:
    return some.pictures(some.pan_and_scan(), thinnest=100)


@searches("PLANNING-36", examples=FEW)
def test_any_video_for_glm4v() -> SearchStrategy[Table]:
    ask, frames = oracle.video_tokens, st.integers(4, 12)
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.qwen("glm4v"), frames, some.sizes(100))


@searches("PLANNING-37", examples=FEW)
def test_any_video_for_smolvlm() -> SearchStrategy[Table]:
    ask = oracle.video_tokens
    return st.builds(lambda *video: against(ask, video[0], video[1:]), some.idefics3("smolvlm"), FRAMES, some.sizes())


@searches("PLANNING-38", examples=FEW)
def test_any_video_for_llava_next_video() -> SearchStrategy[Table]:
    ask, families = oracle.video_tokens, st.integers(28, 100).map(lambda side: known.LLAVA_NEXT_VIDEO.but(image_size=side))
    return st.builds(lambda *video: against(ask, video[0], video[1:]), families, st.integers(1, 30), some.sizes())


@searches("PLANNING-39")
def test_any_recording_for_qwen2_5_omni() -> SearchStrategy[Table]:
    lengths = st.integers(321, 6_000_000)
    return lengths.map(lambda samples: against(oracle.audio_tokens, known.QWEN2_5_OMNI, (samples, 16_000)))


@searches("PLANNING-40", examples=FEW)
def test_any_recording_for_qwen3_omni() -> SearchStrategy[Table]:
    lengths = st.integers(400, 80_000)
    return lengths.map(lambda samples: against(oracle.audio_tokens, known.QWEN3_OMNI, (samples, 16_000)))


def capped(name: str) -> SearchStrategy[Table]:
    """A family of Qwen that caps the pixels of a frame, and a video; shrinks to two frames of one pixel."""
    families = st.builds(
        lambda family, tokens: family.but(cap_pixels_per_frame=True, max_video_tokens=tokens),
        some.qwen(name),
        st.integers(1, 200),
    )
    ask, frames = oracle.capped_tokens, st.integers(4, 24)
    return st.builds(lambda *video: against(ask, video[0], video[1:]), families, frames, some.sizes(100))


@searches("PLANNING-41", examples=FEW)
def test_any_capped_video_for_qwen2_vl() -> SearchStrategy[Table]:
    return capped("qwen2_vl")


@searches("PLANNING-42", examples=FEW)
def test_any_capped_video_for_qwen3_vl() -> SearchStrategy[Table]:
    return capped("qwen3_vl")


@searches("PLANNING-43", examples=FEW)
def test_any_picture_among_several_for_llava_onevision() -> SearchStrategy[Table]:
    families = st.builds(lambda family, count: family.but(pictures_in_prompt=count), some.llava_onevision(), st.integers(2, 4))
    return some.pictures(families, thinnest=20)
