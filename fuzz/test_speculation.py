"""Search for prompts, chunks and positions that break a rule about speculation."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.suite.merging_feeds import Chunked
from conformance.suite.speculation_cases import Draft, Lookup, Placed, draft, spoken
from conformance.world.prompts import VOCABULARY, draw
from fuzz.search import searches
from fuzz.strategies.feeds import TYPES, chunks, lengths
from fuzz.strategies.prompts import ANYTHING, drawings, prompts
from fuzz.strategies.turns import whose_items_may_take_turns
from reference.items import Chunk

LETTERS = "ABijva."
"""Two words, so that they come again; media; and words of their own."""


@st.composite
def drafts(choose: st.DrawFn, characters: str = ANYTHING) -> Draft:
    """A draft over any chunk of any prompt of these characters; shrinks to one position."""
    prompt = choose(prompts(characters).filter(lambda prompt: prompt.input_ids.size))
    chunk = choose(chunks(len(prompt.input_ids)).filter(lambda chunk: chunk.length))
    rows, table = choose(st.sampled_from(TYPES)), choose(st.sampled_from(TYPES[:3]))
    return draft(prompt, chunk.prefix, chunk.length, rows=rows, table=table)


@st.composite
def before(choose: st.DrawFn, then: str) -> Draft:
    """A draft over a chunk, of at least one position, that ends before one of these characters; shrinks to one position."""
    drawing = choose(drawings()) + "." + choose(st.sampled_from(then)) + choose(drawings("."))
    prompt = draw(drawing[-100:])
    place = max(place for place in range(1, len(drawing[-100:])) if drawing[-100:][place] in then)
    length = choose(st.integers(1, place))
    return draft(prompt, place - length, length)


@st.composite
def placed(choose: st.DrawFn, behind: bool) -> Placed:
    """Any positions, and a chunk with up to five steps behind it if it ends with them; shrinks to one position."""
    rows = choose(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=1, max_size=12))
    positions = np.array(rows, dtype=np.int64).T.copy()
    length = len(rows)
    if not behind:
        return Placed(positions, choose(chunks(length).filter(lambda chunk: chunk.length)))
    prefix = choose(st.integers(0, length - 1))
    return Placed(positions, Chunk(prefix, length - prefix), choose(st.integers(1, 5)))


@st.composite
def lookups(choose: st.DrawFn, letters: str = LETTERS) -> Lookup:
    """Any look-up in up to 25 positions; shrinks to none."""
    shortest = choose(st.integers(1, 3))
    longest = choose(st.integers(shortest, 4))
    return Lookup(spoken(choose(st.text(letters, max_size=25))), shortest, longest, choose(st.integers(1, 6)))


@searches("SPECULATION-01")
def test_the_text_of_any_draft() -> SearchStrategy[Draft]:
    return drafts()


@searches("SPECULATION-02", asked=whose_items_may_take_turns)
def test_the_media_of_any_draft() -> SearchStrategy[Draft]:
    return drafts()


@searches("SPECULATION-03")
def test_any_chunk_before_text() -> SearchStrategy[Draft]:
    return before(".#")


@searches("SPECULATION-04", asked=whose_items_may_take_turns)
def test_any_chunk_before_media() -> SearchStrategy[Draft]:
    return before("ijva")


@searches("SPECULATION-05", asked=whose_items_may_take_turns)
def test_any_chunks_of_any_prompt() -> SearchStrategy[Chunked]:
    filled = prompts().filter(lambda prompt: len(prompt.input_ids) > 0)
    return filled.flatmap(
        lambda prompt: lengths(len(prompt.input_ids)).map(lambda cut: Chunked(prompt, tuple(filter(None, cut))))
    )


@searches("SPECULATION-06")
def test_any_sampled_id_outside_the_table() -> SearchStrategy[int]:
    return st.integers(VOCABULARY, 2**63 - 1) | st.integers(-(2**63), -1)


@searches("SPECULATION-07")
def test_the_arguments_of_any_draft() -> SearchStrategy[Draft]:
    return prompts().filter(lambda prompt: len(prompt.input_ids) > 0).map(lambda prompt: draft(prompt))


@searches("SPECULATION-08")
def test_any_positions() -> SearchStrategy[Placed]:
    return placed(behind=False)


@searches("SPECULATION-09")
def test_any_steps() -> SearchStrategy[Placed]:
    return placed(behind=True)


@searches("SPECULATION-10")
def test_the_positions_of_any_target() -> SearchStrategy[Placed]:
    return placed(behind=False) | placed(behind=True)


@searches("SPECULATION-11")
def test_the_proposals_of_any_lookup() -> SearchStrategy[Lookup]:
    return lookups()


@searches("SPECULATION-12")
def test_the_number_of_any_proposals() -> SearchStrategy[Lookup]:
    return lookups()


@searches("SPECULATION-13")
def test_any_lookup_among_media() -> SearchStrategy[Lookup]:
    return lookups()


@searches("SPECULATION-14")
def test_any_lookup_in_text() -> SearchStrategy[Lookup]:
    return lookups("AB.")


@searches("SPECULATION-17")
def test_the_ids_of_any_lookup() -> SearchStrategy[Lookup]:
    return lookups()
