"""Prompts for models with M-RoPE (see `conformance.world.mrope`), and tables of positions."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from conformance.oracles import positions as oracle
from conformance.suite.positions_cases import Conversation
from conformance.world.mrope import LAYOUTS, QWEN2_5_VL, Medium, Script, bare, image, video, write
from reference.items import MropeLayout

SIDES = st.integers(1, 5)
SIXTEENTHS = st.integers(1, 64).map(lambda n: n / 16)
"""Seconds whose product with whole tokens per second is exact in every floating type."""


def layouts() -> SearchStrategy[MropeLayout]:
    """The layouts of all families, Qwen2.5-VL's with several tokens per second; shrinks to Qwen2-VL's."""
    timed = st.sampled_from([1, 2, 4, 25]).map(lambda rate: replace(QWEN2_5_VL, tokens_per_second=rate))
    return st.sampled_from([layout for layout in LAYOUTS if layout.tokens_per_second is None]) | timed


def media(seconds: SearchStrategy[float] = SIXTEENTHS) -> SearchStrategy[Medium]:
    """A picture or a video of up to 7 frames, with sides of up to 5 positions; shrinks to a picture of one position."""
    return st.builds(image, SIDES, SIDES) | st.builds(video, st.integers(1, 7), SIDES, SIDES, seconds)


def parts() -> SearchStrategy[list[int | Medium]]:
    """Up to 6 parts, each a medium or up to 5 positions of text; shrinks to nothing."""
    return st.lists(st.integers(0, 5) | media(), max_size=6)


def scripts() -> SearchStrategy[Script]:
    """Prompts of all families; shrink to one position of text."""
    written = st.builds(lambda layout, written: write(layout, *written), layouts(), parts())
    return written.filter(lambda script: len(script.input_ids) > 0)


def scripts_of(**chosen: Any) -> SearchStrategy[Script]:
    """Prompts with at least one medium, of the layouts that have these values; shrink to one picture."""
    right = layouts().filter(lambda layout: all(getattr(layout, name) == value for name, value in chosen.items()))
    return st.builds(lambda layout, written: write(layout, *written), right, parts().filter(_has_media))


def film_scripts(**chosen: Any) -> SearchStrategy[Script]:
    """Prompts that end with a video, behind text and pictures, of the layouts that have these values; shrink to the video.

    What comes behind a video, and where, is asked by POSITIONS-01.
    """
    right = layouts().filter(lambda layout: all(getattr(layout, name) == value for name, value in chosen.items()))
    before = st.lists(st.integers(0, 5) | st.builds(image, SIDES, SIDES), max_size=3)
    films = st.builds(video, st.integers(1, 7), SIDES, SIDES, SIXTEENTHS)
    return st.builds(lambda layout, before, film: write(layout, *before, film, 1), right, before, films)


def touching_scripts() -> SearchStrategy[Script]:
    """Prompts of up to 5 media without a token between them; shrink to one picture."""
    together = st.lists(media().map(bare), min_size=1, max_size=5)
    return st.builds(lambda layout, written: write(layout, 2, *written, 2), layouts(), together)


@st.composite
def conversations(choose: st.DrawFn) -> Conversation:
    """Two turns of one family, each with some text first; shrink to one position each."""
    layout, first, second = choose(layouts()), [1, *choose(parts())], [1, *choose(parts())]
    return Conversation(write(layout, *first), write(layout, *second), write(layout, *first, *second))


def tables() -> SearchStrategy[NDArray[np.int64]]:
    """The positions of prompts, cut anywhere behind the first one; shrink to a single one."""
    whole = scripts().map(oracle.triples)
    return st.builds(lambda table, length: table[:, :length], whole, st.integers(1, 80))


def _has_media(written: list[int | Medium]) -> bool:
    return any(isinstance(part, Medium) for part in written)
