"""Prompts with media, as drawings (see `conformance.world.prompts`)."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.world.prompts import MODALITIES, BadSpans, Pairing, Prompt, draw, picture
from reference.items import Span

LETTERS = "".join(MODALITIES)
TEXT_AND_MEDIA = "." + LETTERS
ANYTHING = ".#" + LETTERS
LONGEST = 108


def drawings(characters: str = ANYTHING) -> SearchStrategy[str]:
    """Up to 12 runs of up to 9 positions, of text, literal placeholders and media; shrinks to few and short runs of text."""
    runs = st.tuples(st.sampled_from(characters), st.integers(1, 9)).map(lambda run: run[0] * run[1])
    return st.lists(runs, max_size=12).map("".join)


@st.composite
def prompts(choose: st.DrawFn, characters: str = ANYTHING) -> Prompt:
    """A drawn prompt with its items listed in any order; shrinks to text, and to items by appearance."""
    drawing = choose(drawings(characters))
    letters = [letter for letter in dict.fromkeys(drawing) if letter in LETTERS]
    return draw(drawing, "".join(choose(st.permutations(letters))))


@st.composite
def paired_drawings(choose: st.DrawFn) -> tuple[str, str]:
    """A drawing with up to 6 items in token pairs, each with up to 3 slices, and their letters; shrinks to `<>`."""
    letters = LETTERS[: choose(st.integers(1, 6))]
    between, inside = st.integers(0, 2).map(lambda n: "." * n), st.integers(0, 5)
    drawing = choose(between)
    for letter in letters:
        drawing += f"<{letter * choose(inside)}>" + choose(between)
        for length in choose(st.lists(inside, max_size=3)):
            drawing += f"[{letter * length}]" + choose(between)
    return drawing, letters


def pairings() -> SearchStrategy[Pairing]:
    """What pads well; shrinks as the drawings do. Drawings that are too long are left out."""
    return paired_drawings().filter(lambda drawn: len(drawn[0]) <= LONGEST).map(lambda drawn: Pairing(*draw(*drawn)))


@st.composite
def broken_pairings(choose: st.DrawFn) -> Pairing:
    """What must not pad: one pair token too many or too few, or one item; shrinks as the drawings do."""
    drawing, letters = choose(paired_drawings().filter(lambda drawn: len(drawn[0]) < LONGEST))
    tokens = [place for place, character in enumerate(drawing) if character in "<>[]"]
    how = choose(st.sampled_from(["lose a token", "gain a token", "lose an item", "gain an item"]))
    if how == "lose a token":
        place = choose(st.sampled_from(tokens))
        drawing = drawing[:place] + "." + drawing[place + 1 :]
    elif how == "gain a token":
        place = choose(st.integers(0, len(drawing)))
        drawing = drawing[:place] + choose(st.sampled_from("<>[]")) + drawing[place:]
    else:
        letters = letters[:-1] if how == "lose an item" else letters + LETTERS[len(letters)]
    return Pairing(*draw(drawing, letters))


@st.composite
def overlapping(choose: st.DrawFn) -> BadSpans:
    """Two items of which one overlaps the other, in a prompt that holds both; shrinks to short spans at the beginning."""
    first, length, shift = choose(st.integers(0, 9)), choose(st.integers(1, 9)), choose(st.integers(-9, 9))
    span = Span(first, first + length - 1)
    start = max(min(first + shift, span.last), 0)
    other = Span(start, start + max(span.first - start, choose(st.integers(0, 9))))
    end = max(span.last, other.last) + 1
    return BadSpans(end, (picture("i", (span,)), picture("v", (other,))))


@st.composite
def outside(choose: st.DrawFn) -> BadSpans:
    """An item that ends outside its prompt, by 1 to 9 positions; shrinks to one position and an empty prompt."""
    first, length = choose(st.integers(0, 9)), choose(st.integers(1, 9))
    prompt_length = max(first + length - choose(st.integers(1, 9)), 0)
    return BadSpans(prompt_length, (picture("i", (Span(first, first + length - 1),)),))
