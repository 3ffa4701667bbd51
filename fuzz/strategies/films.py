"""Prompts for the Omni models: pictures, recordings, and videos with theirs (see `conformance.world.mrope`)."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.world.mrope import Film, Medium, Script, audio, film, write
from fuzz.strategies.scripts import SIDES, SIXTEENTHS, media
from reference.items import MropeLayout

LENGTHS = st.integers(1, 30)


def recordings() -> SearchStrategy[Medium]:
    """Recordings of up to 30 positions; shrink to one."""
    return LENGTHS.map(audio)


def films() -> SearchStrategy[Film]:
    """Videos of up to 7 frames with recordings of up to 30 positions; shrink to one position each."""
    return st.builds(
        lambda frames, height, width, seconds, sound: film(frames, height, width, seconds, sound=sound),
        st.integers(1, 7),
        SIDES,
        SIDES,
        SIXTEENTHS,
        LENGTHS,
    )


def omni_scripts(layout: MropeLayout, *needed: SearchStrategy[Medium] | SearchStrategy[Film]) -> SearchStrategy[Script]:
    """Prompts with one of each of these in it, between up to 4 other parts; shrink to these alone."""
    others = st.lists(st.integers(0, 4) | media() | recordings() | films(), max_size=2)
    parts = st.tuples(others, st.tuples(*needed), others)
    return parts.map(lambda found: write(layout, *found[0], *found[1], *found[2]))
