"""Videos and prompts with videos, as drawings (see `conformance.world.videos`)."""

import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.world.videos import Pruned, Video, filmed, pruned, video
from reference.items import Request

RATES = st.integers(0, 19).map(lambda twentieths: twentieths / 20) | st.floats(0, 1, exclude_max=True)
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16])


@st.composite
def videos(choose: st.DrawFn, characters: str = "abcdexABCDEX", rates: SearchStrategy[float] = RATES) -> Video:
    """Up to 6 frames of up to 3 x 4 tokens, of any dtype, at any rate; shrinks to one token, "a", float32 and the rate 0."""
    frames, height, width = choose(st.integers(1, 6)), choose(st.integers(1, 3)), choose(st.integers(1, 4))
    row = st.lists(st.sampled_from(characters), min_size=width, max_size=width).map("".join)
    frame = st.lists(row, min_size=height, max_size=height).map("/".join)
    drawing = "|".join(choose(st.lists(frame, min_size=frames, max_size=frames)))
    return video(drawing, choose(rates), choose(DTYPES))


@st.composite
def prompts_to_prune(choose: st.DrawFn, *, whole: bool = False) -> Pruned:
    """Text, pictures, recordings, and up to 2 videos of up to 4 frames in one span or many, of which the first frame and any
    other tokens are kept (all, where `whole`); items listed in any order. Shrinks to text, and to few and full frames."""
    drawing, letters = choose(_text(1)), ""
    for letter in choose(st.permutations("ijavw"))[: choose(st.integers(0, 5))]:
        drawing += choose(_video(letter, whole)) if letter in "vw" else letter * 4
        drawing += choose(_text(1))
        letters += letter
    return pruned(drawing, "".join(choose(st.permutations(letters))))


@st.composite
def screenplays(choose: st.DrawFn, id: str = "screenplay") -> Request:
    """A request with text, pictures, recordings, and up to 2 videos of up to 4 frames of 2 x 2 tokens, in one span or many;
    shrinks to text, and to few frames that are alike."""
    drawing, shown = choose(_text(1)), {}
    for letter in choose(st.permutations("ijavw"))[: choose(st.integers(0, 5))]:
        if letter in "vw":
            frames = choose(st.lists(st.text("abcdeABCDE", min_size=4, max_size=4), min_size=1, max_size=4))
            drawing += choose(st.sampled_from(["", ".", ".."])).join([letter * 4] * len(frames))
            shown[letter] = "|".join(frames)
        else:
            drawing += letter * choose(st.integers(1, 4))
        drawing += choose(_text(1))
    return filmed(id, drawing, shown)


@st.composite
def _video(choose: st.DrawFn, letter: str, whole: bool) -> str:
    bits = st.lists(st.sampled_from([letter.upper(), letter.upper() if whole else letter]), min_size=4, max_size=4)
    frames = [letter.upper() * 4, *choose(st.lists(bits.map("".join), max_size=3))]
    return choose(st.sampled_from(["", ".", ".."])).join(frames)


def _text(shortest: int) -> SearchStrategy[str]:
    return st.integers(shortest, 3).map(lambda length: "." * length)
