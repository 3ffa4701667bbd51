"""Prompts with pictures, as `conformance.world.pictures` writes them."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.cases import Pair
from conformance.world.checkpoint import SPECIAL_TOKENS
from conformance.world.pictures import TOKENS

ALPHABET = st.characters(max_codepoint=0x24F, exclude_characters="{}<|>") | st.sampled_from("\u0301写真🙂")
"""Latin letters, controls and white space, a combining accent, and characters of three and four bytes."""

PARTS = (
    st.text(ALPHABET, max_size=12)
    | st.sampled_from(sorted("{" + name + "}" for name in TOKENS))
    | st.sampled_from([token for token in SPECIAL_TOKENS if not token.endswith(("image_pad|>", "video_pad|>"))])
)
TWINS = (("eye", "cup"), ("chelsea", "coffee"))
"""Two different pictures with equal numbers of tokens."""


def prompts(max_parts: int = 5) -> SearchStrategy[str]:
    """Up to `max_parts` texts, pictures and special tokens, not all of them empty. Shrinks to one picture or character."""
    return st.lists(PARTS, min_size=1, max_size=max_parts).map("".join).filter(bool)


@st.composite
def replaced(draw: st.DrawFn) -> Pair:
    """A prompt, and the same with another picture of equal size in one place. Shrinks to that picture alone."""
    before, after = draw(PARTS), draw(PARTS)
    one, other = draw(st.sampled_from(TWINS))
    return Pair(f"{before}{{{one}}}{after}", f"{before}{{{other}}}{after}")


@st.composite
def swapped(draw: st.DrawFn) -> Pair:
    """A prompt with two pictures of equal size, and the same with the two in each other's place."""
    before, between, after = draw(st.tuples(*[st.text(ALPHABET, max_size=12)] * 3))
    one, other = draw(st.sampled_from(TWINS))
    return Pair(*(f"{before}{{{a}}}{between}{{{b}}}{after}" for a, b in ((one, other), (other, one))))
