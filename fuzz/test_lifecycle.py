"""Search for turns and for the lives of requests that break a rule about the lifecycle."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles.lifecycle import Script, script
from conformance.oracles.lifecycle_turns import Join, Padding, Tables, modalities, padding
from conformance.suite.lifecycle_cases import Lengths, Replies
from fuzz.search import searches
from fuzz.strategies.lives import cut_joins, drawings, joins, joins_with_bos, life_scripts, stripped_tables, tables
from fuzz.strategies.turns import whose_items_may_take_turns


@searches("LIFECYCLE-01")
def test_any_turn_follows_its_reply() -> SearchStrategy[Join]:
    return joins()


@searches("LIFECYCLE-02")
def test_any_item_keeps_its_tokens() -> SearchStrategy[Join]:
    return joins()


@searches("LIFECYCLE-05")
def test_any_beginning_of_sequence() -> SearchStrategy[Join]:
    return joins_with_bos()


@searches("LIFECYCLE-06")
def test_any_cut_beside_items() -> SearchStrategy[Join]:
    return cut_joins(divided=False)


@searches("LIFECYCLE-07")
def test_any_cut_within_an_item() -> SearchStrategy[Join]:
    return cut_joins(divided=True)


@searches("LIFECYCLE-10")
def test_any_history_stays() -> SearchStrategy[Join]:
    return joins()


@searches("LIFECYCLE-11")
def test_any_positions_are_those_of_the_whole() -> SearchStrategy[Tables]:
    return tables()


@searches("LIFECYCLE-12")
def test_any_delta_is_that_of_the_whole() -> SearchStrategy[Tables]:
    return tables()


@searches("LIFECYCLE-14")
def test_any_stripped_turn_loses_a_position() -> SearchStrategy[Tables]:
    return stripped_tables()


@searches("LIFECYCLE-15")
def test_any_modalities_are_those_of_the_whole() -> SearchStrategy[Tables]:
    return (joins() | joins_with_bos() | cut_joins(divided=False)).map(modalities)


@searches("LIFECYCLE-16")
def test_any_turn_is_padded_behind_its_history() -> SearchStrategy[Padding]:
    return joins().map(padding)


@searches("LIFECYCLE-17")
def test_any_padded_ids_of_another_length() -> SearchStrategy[Padding]:
    others = st.tuples(joins(), drawings()).filter(lambda pair: len(pair[0].turn.input_ids) != len(pair[1]))
    return others.map(lambda pair: padding(*pair))


@searches("LIFECYCLE-19", asked=whose_items_may_take_turns)
def test_any_chunks() -> SearchStrategy[Script]:
    return life_scripts(("step", "step", "step", "reply", "finish", "admit"))


@searches("LIFECYCLE-20", asked=whose_items_may_take_turns)
def test_any_retractions() -> SearchStrategy[Script]:
    return life_scripts(("step", "step", "reply", "retract", "admit"))


@searches("LIFECYCLE-21", asked=whose_items_may_take_turns)
def test_any_cache() -> SearchStrategy[Script]:
    return life_scripts(("step", "step", "step", "retract", "admit"), most_rows=30)


@searches("LIFECYCLE-23", asked=whose_items_may_take_turns)
def test_any_aborts() -> SearchStrategy[Script]:
    return life_scripts(("step", "step", "reply", "retract", "abort", "admit"))


@searches("LIFECYCLE-25", examples=200, asked=whose_items_may_take_turns)
def test_any_life() -> SearchStrategy[Script]:
    return life_scripts()


@searches("LIFECYCLE-29")
def test_any_life_ends_with_nothing() -> SearchStrategy[Script]:
    return life_scripts()


@searches("LIFECYCLE-30")
def test_any_life_holds_what_it_needs_at_most() -> SearchStrategy[Script]:
    return life_scripts()


@searches("LIFECYCLE-31")
def test_any_life_holds_what_it_needs() -> SearchStrategy[Script]:
    return life_scripts()


@searches("LIFECYCLE-33")
def test_any_life_leaves_the_device_clear() -> SearchStrategy[Script]:
    return life_scripts()


@searches("LIFECYCLE-35")
def test_any_replies() -> SearchStrategy[Replies]:
    return st.builds(
        Replies, drawings(("..", "iii", "jj", "a"), 4).map(".{}".format), st.lists(st.integers(0, 4), max_size=4).map(tuple)
    )


@searches("LIFECYCLE-39", asked=whose_items_may_take_turns)
def test_any_two_lengths_of_one_identity() -> SearchStrategy[Lengths]:
    def lives(everything: Script, one: int, other: int, begun: int, cache_rows: int) -> Lengths:
        prompts = {"a": f".{'i' * one}.", "b": f"{'i' * other}."}
        lines = ("admit a", f"step a {begun}", "admit b", "step a 9 b 9", "abort b", "finish a")
        return Lengths(everything, script(prompts, *lines, cache_rows=cache_rows))

    lengths = st.integers(1, 5)
    return st.builds(lives, life_scripts(conflicts=True), lengths, lengths, lengths, st.integers(0, 12))
