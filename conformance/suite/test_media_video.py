"""MEDIA: from the bytes of a video to the frames that a model is shown."""

from conformance.compare import equal, holds, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles.media import upright
from conformance.oracles.media_films import rate_of
from conformance.protocol.media import Clip, DecodedVideo
from conformance.requirement import SHOULD, requirement
from conformance.suite import media_video_cases as cases
from conformance.suite.media_checks import is_told_as_the_clients_fault
from conformance.suite.media_video_cases import ENOUGH, Limited, Showing, Turned
from conformance.world.films import GREY_STEP, Film

PLACE = "place {}".format
ROW = "row {}".format


def shown(engine: Engine, case: Showing) -> DecodedVideo:
    return engine.decode_video(case.film.data, case.rate, case.max_frames, ENOUGH)


def frames_are_those_of(film: Film, observed: DecodedVideo) -> None:
    """Each frame has the pixels of the one with its number."""
    for index, pixels in zip(observed.indices, observed.pixels, strict=True):
        holds(0 <= index < len(film.frames), f"frame {index} is shown, of {len(film.frames)}")
        equal(pixels, film.frames[index], f"frame {index}", where=ROW)


def all_are_shown(engine: Engine, observed: DecodedVideo, count: int) -> None:
    """As many frames as there are; where multiples of some are shown (the trait `frame_multiple`), as many as make one."""
    least = max(1, count - count % engine.traits.frame_multiple)
    holds(least <= len(observed.indices) <= count, f"{len(observed.indices)} frames are shown, of {count} that may be")


@requirement("MEDIA-38", needs="decode_video", cases=cases.PLAYED, bugs=("odd-frames-reject", "video-jpeg-frame-cap"))
def test_a_frame_is_the_one_whose_number_it_has(engine: Engine, case: Showing) -> None:
    """A frame that is shown MUST have the pixels of the video's frame with its number, whatever the number of frames.

    The films lose nothing, so the pixels are the very ones that were encoded.
    """
    frames_are_those_of(case.film, shown(engine, case))


@requirement("MEDIA-39", needs="decode_video", cases=cases.REORDERED)
def test_frames_are_numbered_as_they_are_shown(engine: Engine, case: Showing) -> None:
    """Frames that are stored in another order than they are shown MUST be numbered, and come, in the order of showing.

    These films lose a little: each frame is of one grey, and its number is read from the nearest of the greys.
    """
    observed = shown(engine, case)
    numbers = tuple(round(float(pixels.mean()) / GREY_STEP) - 1 for pixels in observed.pixels)
    equal(numbers, observed.indices, "the frames by their greys", where=PLACE)


@requirement(
    "MEDIA-40", needs=("decode_video", "sample_frames"), cases=cases.PLAYED, bugs=("F01", "F05", "video-numframes-vs-fps")
)
def test_the_frames_are_those_of_the_sampler(engine: Engine, case: Showing) -> None:
    """The frames that are shown, and their number, MUST be those that the engine's sampler chooses of the whole video."""
    clip = Clip(0, len(case.film.frames), float(case.film.fps))
    expected, _ = engine.sample_frames(clip, case.rate, case.max_frames)
    equal(shown(engine, case).indices, expected, "the numbers of the frames", where=PLACE)


@requirement("MEDIA-41", needs="decode_video", cases=cases.PLAYED, bugs=("F04", "temporal-pad-wrong-count"))
def test_at_least_one_frame_and_none_twice(engine: Engine, case: Showing) -> None:
    """At least one frame, no frame twice and no more frames than may be MUST be shown, each behind its predecessor."""
    observed = shown(engine, case)
    holds(1 <= len(observed.pixels) <= case.max_frames, f"{len(observed.pixels)} frames of {case} are shown")
    equal(observed.indices, tuple(sorted(set(observed.indices))), "the numbers of the frames", where=PLACE)


@requirement(
    "MEDIA-42",
    needs="decode_video",
    cases=cases.PLAYED,
    bugs=("video-metadata-sampled-vs-source", "do-sample-frames-metadata-override"),
)
def test_rate_and_length_are_those_of_the_whole_video(engine: Engine, case: Showing) -> None:
    """The rate and the number of frames that are told MUST be those of the whole video, whatever is shown of it."""
    observed = shown(engine, case)
    equal((observed.length, rate_of(observed.fps)), (len(case.film.frames), case.film.fps), "the length and the rate")


@requirement("MEDIA-43", needs="decode_video", cases=cases.PLAYED, bugs=("F02", "video-metadata-sampled-vs-source"))
def test_a_time_is_that_of_the_frame(engine: Engine, case: Showing) -> None:
    """At a constant rate the time of a frame MUST be its number in the whole video divided by the video's own rate."""
    observed = shown(engine, case)
    equal(tuple(round(time * case.film.fps) for time in observed.times), observed.indices, "the frames at these times")


@requirement("MEDIA-44", needs="decode_video", cases=cases.SHOWN_AT, bugs=("F05",), level=SHOULD)
def test_a_time_at_no_rate_is_the_one_in_the_file(engine: Engine, case: tuple[Showing, tuple[int, ...]]) -> None:
    """Where frames come at no constant rate, the time of each SHOULD be the one at which it is shown, counted from the first.

    Telephones and screen recorders make such videos. Compared in milliseconds, the clock of the films.
    """
    observed = shown(engine, case[0])
    expected = tuple(case[1][index] for index in observed.indices)
    equal(tuple(round(1000 * time) for time in observed.times), expected, "the times in ms", where=PLACE)


@requirement("MEDIA-45", needs="decode_video", cases=cases.TURNED, bugs=("M04",))
def test_a_video_is_turned_once_as_its_matrix_asks(engine: Engine, case: Turned) -> None:
    """Frames MUST be turned and mirrored as the display matrix asks, once: telephones hold all their films upright so."""
    observed = engine.decode_video(case.film.data, None, 3, ENOUGH)
    for index, pixels in zip(observed.indices, observed.pixels, strict=True):
        equal(pixels, upright(case.film.frames[index], case.orientation), f"frame {index}", where=ROW)


@requirement("MEDIA-46", needs="decode_video", cases=cases.MISCOUNTED, bugs=("do-sample-frames-metadata-override",))
def test_frames_are_counted_and_not_believed(engine: Engine, case: Showing) -> None:
    """Where a header has no number of frames, or a wrong one, those that are there MUST be shown and told, or it is refused."""
    for observed in unless_refused(lambda: shown(engine, case), f"{case}"):
        frames_are_those_of(case.film, observed)
        equal(observed.length, len(case.film.frames), "the number of frames of the video")
        all_are_shown(engine, observed, min(case.max_frames, len(case.film.frames)))


@requirement("MEDIA-47", needs="decode_video", cases=cases.NONE)
def test_what_is_no_video_is_refused(engine: Engine, case: bytes) -> None:
    """Data that are no video, have no frames, or only name other files MUST be refused, and never give pixels."""
    refuses(lambda: engine.decode_video(case, None, 8, ENOUGH), "a video that is none")


@requirement("MEDIA-48", needs="decode_video", cases=cases.CUT_OFF)
def test_a_video_that_ends_early_is_refused_or_shown_as_far_as_it_goes(engine: Engine, case: Film) -> None:
    """Of a video that ends early only frames that are there MUST be shown, with their own number; or it is refused."""
    for observed in unless_refused(lambda: shown(engine, Showing(case)), "a video that ends early"):
        frames_are_those_of(case, observed)
        all_are_shown(engine, observed, observed.length)


@requirement("MEDIA-49", needs="decode_video", cases=cases.TOO_MUCH, bugs=("S01",))
def test_frames_beyond_the_limit_of_pixels_are_refused(engine: Engine, case: Limited) -> None:
    """A video whose frames have more pixels than the limit MUST be refused, in every container."""
    refuses(lambda: engine.decode_video(case.data, None, 8, case.limits), f"more than {case.limits.max_pixels} pixels")


@requirement("MEDIA-50", needs="decode_video", cases=cases.TOO_LONG, level=SHOULD)
def test_a_video_beyond_the_limit_of_length_is_refused(engine: Engine, case: Limited) -> None:
    """A video of more frames or seconds than the limit SHOULD be refused, by what is in it and not by its header.

    Each frame is decoded to be counted, at least by its own means: without a limit a small file takes any time.
    """
    refuses(lambda: engine.decode_video(case.data, None, 8, case.limits), f"a video beyond {case.limits}")


@requirement("MEDIA-51", needs="decode_video", cases=cases.JUST_FITS)
def test_a_video_of_the_limit_is_shown(engine: Engine, case: Limited) -> None:
    """A video of exactly as many pixels and frames as the limits MUST be shown: they are inclusive."""
    observed = engine.decode_video(case.data, None, 100, case.limits)
    all_are_shown(engine, observed, case.limits.max_source_frames)


@requirement("MEDIA-52", needs="decode_video", cases=cases.NONE, bugs=("M01",), level=SHOULD)
def test_a_refused_video_is_told_as_the_clients_fault(engine: Engine, case: bytes) -> None:
    """The refusal of a video SHOULD be a ValueError without a memory address or a path: the client's fault."""
    is_told_as_the_clients_fault(lambda: engine.decode_video(case, None, 8, ENOUGH), "/etc/", "/usr/", "/tmp/")
