"""MEDIA: which frames of a video are shown, and when each of them is."""

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.protocol.media import Clip
from conformance.requirement import SHOULD, requirement


class Sampling(NamedTuple):
    """A clip, how many frames are to be shown for each second, and how many at most."""

    clip: Clip
    rate: float | None
    max_frames: int = 768

    def __str__(self) -> str:
        return f"{self.clip.length} frames at {self.clip.fps}, sampled at {self.rate}"


SHORT = {
    "one-frame": Sampling(Clip(0, 1, 25.0), 2.0),
    "one-frame-at-any-number": Sampling(Clip(0, 1, 25.0), None),
    "less-than-a-sample": Sampling(Clip(0, 10, 25.0), 1.0),
    "just-a-sample": Sampling(Clip(0, 25, 25.0), 1.0),
    "slow-film": Sampling(Clip(0, 3, 0.5), 2.0),
    "two-frames": Sampling(Clip(0, 2, 30.0), 2.0, 1),
}
LONG = {
    "four-seconds": Sampling(Clip(0, 32, 8.0), 2.0),
    "ten-seconds": Sampling(Clip(0, 250, 25.0), 2.0),
    "television": Sampling(Clip(0, 3000, 30000 / 1001), 2.0),
    "odd-number": Sampling(Clip(0, 227, 24.0), 1.0),
    "every-frame": Sampling(Clip(0, 50, 5.0), 5.0),
    "a-third-each-second": Sampling(Clip(0, 900, 30.0), 1 / 3),
}
CAPPED = {
    "by-rate": Sampling(Clip(0, 250, 25.0), 2.0, 8),
    "by-number": Sampling(Clip(0, 1000, 25.0), None, 8),
    "to-four": Sampling(Clip(0, 250, 25.0), None, 4),
    "an-hour": Sampling(Clip(0, 90_000, 25.0), 2.0, 768),
}
PARTS = {
    "from-two-seconds-on": Sampling(Clip(60, 90, 30.0), 6.0),
    "the-last-frame": Sampling(Clip(299, 1, 30.0), 2.0),
    "capped": Sampling(Clip(100, 100, 25.0), 2.0, 4),
}
TABLES = {"short": SHORT, "long": LONG, "capped": CAPPED, "part": PARTS}
ALL = {f"{kind}-{name}": case for kind, table in TABLES.items() for name, case in table.items()}
UNUSABLE = {
    "no-frames": Sampling(Clip(0, 0, 25.0), 2.0),
    "no-frames-at-any-number": Sampling(Clip(0, 0, 25.0), None),
    "no-rate-of-its-own": Sampling(Clip(0, 100, 0.0), 2.0),
    "negative-rate-of-its-own": Sampling(Clip(0, 100, -25.0), 2.0),
    "endless-rate-of-its-own": Sampling(Clip(0, 100, float("inf")), 2.0),
    "no-number": Sampling(Clip(0, 100, float("nan")), 2.0),
    "rate-of-zero": Sampling(Clip(0, 100, 25.0), 0.0),
    "negative-rate": Sampling(Clip(0, 100, 25.0), -2.0),
    "endless-rate": Sampling(Clip(0, 100, 25.0), float("inf")),
    "none-may-be-shown": Sampling(Clip(0, 100, 25.0), 2.0, 0),
}


@requirement("MEDIA-32", needs="sample_frames", cases=ALL, bugs=("F04", "F06"))
def test_at_least_one_frame_and_only_frames_of_the_clip(engine: Engine, case: Sampling) -> None:
    """Of every clip at least one frame MUST be shown, in ascending order, numbered in the whole video, none outside it."""
    indices, _ = engine.sample_frames(*case)
    holds(bool(indices), f"no frame of {case} is shown")
    equal(indices, tuple(sorted(indices)), "the frames", where="place {}".format)
    clip = range(case.clip.first, case.clip.first + case.clip.length)
    equal(tuple(frame for frame in indices if frame not in clip), (), "the frames outside the clip")


@requirement("MEDIA-33", needs="sample_frames", cases=CAPPED, bugs=("video-jpeg-frame-cap",))
def test_no_more_frames_than_may_be(engine: Engine, case: Sampling) -> None:
    """No more frames than the limit MUST be shown, by rate or by number."""
    indices, _ = engine.sample_frames(*case)
    holds(len(indices) <= case.max_frames, f"{len(indices)} frames are shown, where {case.max_frames} may be")


@requirement("MEDIA-34", needs="sample_frames", cases=ALL, bugs=("F02", "F05", "F06"))
def test_a_time_is_that_of_the_frame_that_is_shown(engine: Engine, case: Sampling) -> None:
    """The time of a frame MUST be its number in the whole video divided by the video's own rate."""
    indices, times = engine.sample_frames(*case)
    shown_then = tuple(round(time * case.clip.fps) for time in times)
    equal(shown_then, indices, "the frames at these times", where="place {}".format)


@requirement("MEDIA-35", needs="sample_frames", cases=LONG, bugs=("F01",))
def test_the_rate_is_the_one_that_was_asked_for(engine: Engine, case: Sampling) -> None:
    """The number of frames MUST be that of the clip's seconds times the rate, within one frame: sampled once, not twice.

    An engine that shows multiples of some frames (the trait `frame_multiple`) is within one such multiple.
    """
    indices, _ = engine.sample_frames(*case)
    wanted = case.clip.length * Fraction(case.rate or 0) / Fraction(case.clip.fps)
    near = abs(len(indices) - wanted) <= engine.traits.frame_multiple
    holds(near, f"{len(indices)} frames of {case} are shown, where {float(wanted):g} are asked for")


@requirement("MEDIA-36", needs="sample_frames", cases=LONG | CAPPED | PARTS, level=SHOULD)
def test_frames_are_spread_over_the_whole_clip(engine: Engine, case: Sampling) -> None:
    """Frames SHOULD be evenly spread: no two gaps differ by more than one frame, and neither end is left out.

    What is not shown before the first and after the last frame is no longer than one step.
    """
    indices, _ = engine.sample_frames(*case)
    holds(bool(indices), f"no frame of {case} is shown")
    gaps = {after - before for before, after in pairwise(indices)} or {0}
    holds(max(gaps) - min(gaps) <= 1, f"the gaps between frames are of {sorted(gaps)} frames")
    step = -(-case.clip.length // len(indices))
    unseen = (indices[0] - case.clip.first, case.clip.first + case.clip.length - 1 - indices[-1])
    holds(max(unseen) <= step, f"{unseen} frames at the ends are not shown, where a step is {step}")


@requirement("MEDIA-37", needs="sample_frames", cases=UNUSABLE)
def test_a_clip_that_cannot_be_sampled_is_refused(engine: Engine, case: Sampling) -> None:
    """A clip without frames, and a rate that is no positive number, MUST be refused: containers say such things."""
    refuses(lambda: engine.sample_frames(*case), f"{case}")
