"""Prompts with recordings, and with videos that have theirs in them; sections of rotary frequencies."""

from dataclasses import replace
from typing import NamedTuple

from conformance.world.mrope import QWEN2_5_OMNI, QWEN3_OMNI, Script, audio, film, image, video, write


class Sections(NamedTuple):
    """How many frequencies time, height and width rotate, and whether they take turns."""

    sections: tuple[int, int, int]
    interleaved: bool


RECORDINGS = {
    "one": write(QWEN3_OMNI, image(1, 2), 2, audio(5), 2),
    "behind-a-picture": write(QWEN3_OMNI, 1, image(2, 5), 1, audio(3), 1),
    "before-a-picture": write(QWEN3_OMNI, audio(4), 1, image(3, 2), 2),
    "two": write(QWEN3_OMNI, 1, audio(2), image(2, 2), audio(16), 1),
    "behind-a-silent-video": write(QWEN3_OMNI, 1, video(3, 2, 2, 0.5), 1, audio(6), 1),
}
FILMS = {
    "as-long-as-its-recording": write(QWEN3_OMNI, 1, film(2, 1, 2, sound=8), 2),
    "outlasts-its-recording": write(QWEN3_OMNI, 2, film(4, 2, 2, sound=5), 2),
    "is-outlasted-by-its-recording": write(QWEN3_OMNI, 1, film(2, 2, 2, 0.5, sound=9), 1),
    "rows-outlast-both": write(QWEN3_OMNI, 1, film(2, 7, 1, 0.25, sound=3), 2),
    "one-frame": write(QWEN3_OMNI, 1, film(1, 2, 3, sound=4), 1),
    "half-seconds": write(QWEN3_OMNI, 3, film(5, 1, 2, 0.5, sound=10), 1),
    "two": write(QWEN3_OMNI, 1, film(2, 1, 2, sound=6), 1, film(3, 2, 1, 0.5, sound=7), 2),
    "behind-a-picture": write(QWEN3_OMNI, image(2, 3), 1, film(2, 2, 1, sound=8), 1),
    "before-a-recording": write(QWEN3_OMNI, film(2, 1, 2, sound=6), 1, audio(4), 1),
    "behind-a-recording": write(QWEN3_OMNI, audio(4), 1, film(2, 1, 2, sound=6), 2),
}
IN_PIECES = {
    "one-piece": write(QWEN2_5_OMNI, 1, film(2, 1, 2, sound=6), 1),
    "two-pieces": write(QWEN2_5_OMNI, 1, film(4, 1, 2, sound=15), 1),
    "three-pieces-in-half-seconds": write(QWEN2_5_OMNI, 2, film(9, 1, 1, 0.5, sound=18), 1),
    "recording-of-one-piece": write(QWEN2_5_OMNI, 1, film(4, 2, 1, sound=5), 1),
    "video-of-one-piece": write(QWEN2_5_OMNI, 1, film(2, 2, 1, sound=17), 1),
    "behind-a-picture": write(QWEN2_5_OMNI, image(2, 3), 1, film(4, 1, 2, sound=15), 1),
    "at-25-a-second": write(replace(QWEN2_5_OMNI, tokens_per_second=25), 1, film(4, 1, 2, sound=90), 1),
}


def silenced(script: Script) -> Script:
    """The same prompt, but its recordings did not arrive."""
    return script._replace(items=tuple(item for item in script.items if "audio_feature_lengths" not in item.fields))


WITHOUT_RECORDING = {name: silenced(FILMS[name]) for name in ("as-long-as-its-recording", "one-frame", "two")}
SECTIONS = {
    f"{'interleaved' if interleaved else 'blocked'}-{'-'.join(map(str, sections))}": Sections(sections, interleaved)
    for sections, interleaved in (
        ((16, 24, 24), False),
        ((24, 20, 20), False),
        ((2, 1, 3), False),
        ((24, 20, 20), True),
        ((11, 11, 10), True),
        ((4, 2, 1), True),
        ((3, 3, 3), True),
    )
}
