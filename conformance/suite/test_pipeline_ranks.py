"""PIPELINE_RANKS: what each rank of a model that is split by layers is fed."""

import torch

from conformance.cases import Pair
from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles import merging
from conformance.oracles import pipeline_ranks as oracle
from conformance.protocol.pipeline_ranks import Received
from conformance.requirement import SHOULD, requirement
from conformance.suite.merging_feeds import HIDDEN
from conformance.suite.pipeline_ranks_cases import Split, Tower, along_the_pipeline, ask, made, meets, served, split
from conformance.world.prompts import VOCABULARY, draw
from conformance.world.qwen3_vl_text import LAYERS, run_part, run_whole, tiny_text_model
from reference.items import Chunk

FIRST_RANK_HAS_ALL = {
    "one-rank": split("..iii..", (4,), (0, 1)),
    "levels-on-the-first-rank": split("..iii.j.", (3, 2), (0, 1, 2)),
    "no-deepstack": split(".ii.vv.", (2, 2), ()),
    "text-only": split(".....", (2, 2), (0, 1)),
    "chunk-inside-a-picture": split(".iiii..", (2, 1), (0, 1), Chunk(3, 3)),
    "bfloat16": split("..iii..", (2, 2), (0, 1), table=torch.bfloat16),
}
ACROSS_RANKS = {
    "one-layer-each": split("..iii..", (1, 1, 1, 1), (0, 1, 2)),
    "border-between-levels": split(".ii.jj.", (2, 3), (0, 1, 2)),
    "last-level-on-the-last-rank": split("iii.", (2, 1), (0, 2)),
    "none-on-the-first-rank": split(".iii", (1, 2, 2), (2, 3)),
    "one-rank-without-a-level": split(".iii.", (1, 2, 2), (0, 3)),
    "seven-layers-on-three-ranks": split(".iii.", (2, 3, 2), (0, 1, 2)),
    "levels-in-another-order": split(".iii.", (2, 2), (3, 0)),
    "interleaved": split("vva.vi.", (1, 3), (0, 1, 2)),
    "listed-in-another-order": split(draw(".ii.vv.", listed="vi"), (1, 3), (0, 1)),
    "two-spans-in-a-chunk": split(".vv.v.vvv.", (1, 1), (0, 1), Chunk(2, 6)),
}
SPLITS = FIRST_RANK_HAS_ALL | ACROSS_RANKS


@requirement("PIPELINE_RANKS-01", needs="rank_input", cases=FIRST_RANK_HAS_ALL, bugs=("D02",))
def test_the_first_rank_takes_the_merged_embeddings(engine: Engine, case: Split) -> None:
    """The first rank MUST take the merged embeddings of text and media, as a model on one rank does."""
    prompt, chunk, rows, table = case.feed
    observed = ask(engine, case, 0).hidden_states
    equal(observed, merging.merged(*prompt, rows[:, :HIDDEN], table, chunk), "the hidden states of rank 0")


@requirement("PIPELINE_RANKS-02", needs="rank_input", cases=FIRST_RANK_HAS_ALL)
def test_later_ranks_go_on_from_what_they_receive(engine: Engine, case: Split) -> None:
    """Every later rank MUST take the hidden states that it received, bit by bit."""
    inputs = along_the_pipeline(engine, case)
    for rank in range(1, len(inputs)):
        equal(inputs[rank].hidden_states, made(inputs[rank - 1]), f"the hidden states of rank {rank}")


@requirement(
    "PIPELINE_RANKS-03",
    needs="rank_input",
    cases={name: case for name, case in FIRST_RANK_HAS_ALL.items() if name not in ("one-rank", "text-only")},
)
def test_only_the_first_rank_encodes(engine: Engine, case: Split) -> None:
    """Encoders MUST be called on the first rank alone, once for each item of the chunk.

    The other ranks hold no vision tower, and would pay its time and memory once more for rows that nobody reads.
    """
    tower = Tower(case)
    along_the_pipeline(engine, case, tower)
    expected = [item.identity for item in case.feed.prompt.items if meets(item, case.feed.chunk)]
    equal(sorted(item.identity for item in tower.encoded), sorted(expected), "the encoded items")


@requirement(
    "PIPELINE_RANKS-04",
    needs="rank_input",
    cases=SPLITS,
    bugs=("D04", "pp-deepstack-lost", "D02", "Q02", "K06", "deepstack-buffer-short"),
)
def test_each_layer_has_the_rows_of_its_level(engine: Engine, case: Split) -> None:
    """Each rank MUST have, for each of its layers that takes a level, the columns of that level at media and zeros at text.

    No other layer may have rows. Where the chunk has no media, no rows are as good as zeros.
    """
    prompt, chunk, rows, table = case.feed
    levels = merging.levels(len(prompt.input_ids), prompt.items, rows.to(table.dtype), HIDDEN, chunk)
    for layers, observed in served(engine, case):
        expected = oracle.rows_of_layers(layers, case.level_layers, levels)
        equal(sorted({*expected, *observed.deepstack}), sorted(expected), f"the layers of {layers} with rows")
        for layer, right in expected.items():
            given = observed.deepstack.get(layer, torch.full_like(right, torch.nan) if case.feed.media else right)
            equal(given, right, f"the rows of layer {layer}")


@requirement("PIPELINE_RANKS-05", needs="rank_input", level=SHOULD, cases=SPLITS)
def test_rows_travel_no_further_than_they_are_needed(engine: Engine, case: Split) -> None:
    """A rank SHOULD hand on the rows of later layers only: all others cost bandwidth in every step."""
    for layers, observed in served(engine, case):
        later = [layer for layer in case.level_layers if layer >= layers.stop]
        equal(sorted({*later, *observed.handed_on}), sorted(later), f"the layers whose rows are handed on behind {layers}")


@requirement(
    "PIPELINE_RANKS-06",
    needs="rank_input",
    cases={
        "one-rank": split("..iii..", (LAYERS,), (0, 1, 2)),
        "levels-on-the-first-rank": split("..iii.j.", (3, 3), (0, 1, 2)),
        "border-between-levels": split(".iii..vv.v.", (2, 4), (0, 1, 2)),
        "one-layer-each": split(".iii.j.", (1,) * LAYERS, (0, 1, 2)),
        "a-level-on-the-last-layer": split(".iii.j.", (2, 2, 2), (0, 1, 2, 3, 4, 5)),
        "text-only": split(".......", (1, 5), (0, 1, 2)),
        "nothing-but-media": split("iiijj", (1, 2, 3), (0, 1, 2)),
        "no-deepstack": split("..iii..", (2, 4), ()),
    },
    bugs=("D04", "pp-deepstack-lost", "D02"),
)
def test_a_split_model_answers_as_the_whole(engine: Engine, case: Split) -> None:
    """A model in ranks MUST answer as it does on one, bit by bit: here transformers' Qwen3-VL, six layers of it."""
    prompt, chunk, rows, table = case.feed
    model, media = tiny_text_model(VOCABULARY, HIDDEN), torch.zeros(chunk.length, dtype=torch.bool)
    media[case.feed.media] = True
    expected = run_whole(model, merging.merged(*prompt, rows[:, :HIDDEN], table, chunk), media, case.levels)
    for _ in served(engine, case)[:1]:
        states = ask(engine, case, 0)
        for rank, layers in enumerate(case.ranks[:-1]):
            sent = Received(run_part(model, layers, states.hidden_states, states.deepstack), states.handed_on)
            states = ask(engine, case, rank + 1, sent)
        observed = run_part(model, case.ranks[-1], states.hidden_states, states.deepstack)
        equal(observed, expected, "the last hidden states")


@requirement(
    "PIPELINE_RANKS-07",
    needs="rank_input",
    cases={
        "for-its-only-layer": split(".iii.", (1, 1), (0, 1)),
        "for-one-of-its-layers": split(".iii.", (1, 3), (2,)),
        "for-a-later-rank": split(".iii.", (1, 1, 1), (2,)),
    },
    bugs=("D04", "pp-deepstack-lost"),
)
def test_rows_that_did_not_come_are_missed(engine: Engine, case: Split) -> None:
    """A rank that has not received rows which it or a later rank needs MUST refuse to go on without them."""
    received = Received(torch.ones(case.feed.chunk.length, HIDDEN), {})
    refuses(lambda: ask(engine, case, 1, received), f"no rows for the layers {case.level_layers} on rank 1 of {case.ranks}")


@requirement(
    "PIPELINE_RANKS-08",
    needs="rank_input",
    cases={
        "a-gap": Split(split(".ii.", (1,), (0,)).feed, (range(0, 1), range(2, 3)), (0,)),
        "an-overlap": Split(split(".ii.", (1,), (0,)).feed, (range(0, 2), range(1, 3)), (0,)),
        "not-from-the-first-layer": Split(split(".ii.", (1,), (0,)).feed, (range(1, 3),), (1,)),
        "a-rank-without-layers": split(".ii.", (2, 0, 2), (0,)),
        "no-rank": split(".ii.", (), (0,)),
        "a-level-behind-the-last-layer": split(".ii.", (2, 2), (4,)),
        "a-level-before-the-first-layer": split(".ii.", (2, 2), (-1,)),
        "two-levels-on-a-layer": split(".ii.", (2, 2), (1, 1)),
    },
    bugs=("D04",),
)
def test_a_split_that_loses_a_layer_is_refused(engine: Engine, case: Split) -> None:
    """A split with a gap, an overlap or an empty rank MUST be refused, and so must a level without a layer of its own."""
    refuses(lambda: ask(engine, case, 0), f"levels on the layers {case.level_layers} of {case.ranks}")


@requirement(
    "PIPELINE_RANKS-09",
    needs="rank_input",
    cases={
        "text-after-a-picture": Pair(split("iiiii", (1, 2), (0, 1)), split(".....", (1, 2), (0, 1))),
        "text-of-the-same-prompt": Pair(
            split("iii..", (1, 2), (0, 1), Chunk(0, 3)), split("iii...", (1, 2), (0, 1), Chunk(3, 3))
        ),
        "fewer-media": Pair(split("iiiii", (1, 2), (0, 1)), split("..i..", (1, 2), (0, 1))),
    },
    bugs=("D01", "K06", "deepstack-buffer-short"),
)
def test_no_rank_keeps_rows_of_an_earlier_chunk(engine: Engine, case: Pair) -> None:
    """The rows of a layer MUST be zero, or absent, at text, whatever the chunk before had at its place."""
    along_the_pipeline(engine, case.first)
    text = case.second.feed.text
    for rank, observed in enumerate(along_the_pipeline(engine, case.second)):
        for layer, rows in observed.deepstack.items():
            equal(rows[text], torch.zeros(len(text), HIDDEN), f"the rows of layer {layer} on rank {rank} at text")


@requirement("PIPELINE_RANKS-10", needs="rank_input", cases=FIRST_RANK_HAS_ALL)
def test_what_is_received_is_left_as_it_was(engine: Engine, case: Split) -> None:
    """A rank MUST leave what it received as it was: the buffers belong to the transfer between ranks."""
    first = ask(engine, case, 0)
    sent = Received(made(first), {layer: rows.clone() for layer, rows in first.handed_on.items()})
    for rank in range(1, len(case.ranks)):
        ask(engine, case, rank, sent)
        equal(sent.hidden_states, made(first), f"the hidden states that rank {rank} received")
        holds(sorted(sent.deepstack) == sorted(first.handed_on), f"rank {rank} changed the rows that it received")
