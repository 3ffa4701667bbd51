"""PRUNING: the positions of a prompt whose videos are pruned."""

import numpy as np

from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles import pruning as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.test_pruning import PROMPTS, WHOLE
from conformance.world.videos import Pruned

ANYWHERE = PROMPTS | WHOLE


@requirement("PRUNING-14", needs="prune_positions", cases=ANYWHERE, bugs=("V01", "evs-video-then-image-mrope"))
def test_kept_tokens_keep_their_positions(engine: Engine, case: Pruned) -> None:
    """A token of a medium that is kept MUST be as far from the text before it as it was before pruning, on every axis."""
    observed, _ = engine.prune_positions(case.positions.copy(), case.items, case.masks)
    media = [place for place in oracle.places(case) if not place.is_text]
    equal(observed.shape[1], len(oracle.survivors(case)), "the number of positions")
    equal(
        oracle.distances(observed, [(place.new, place.new_text) for place in media]),
        oracle.distances(case.positions, [(place.old, place.old_text) for place in media]),
        "the distances on the three axes to the text before",
        where=lambda n: f"position {media[n].new}",
    )


@requirement("PRUNING-15", needs="prune_positions", cases=ANYWHERE, bugs=("V01",))
def test_text_stands_behind_all_that_came_before(engine: Engine, case: Pruned) -> None:
    """The position of text MUST be one on all axes, larger than all before it, and one larger than that of text beside it."""
    observed, _ = engine.prune_positions(case.positions.copy(), case.items, case.masks)
    for place in (place for place in oracle.places(case) if place.is_text):
        at, before = observed[:, place.new], int(observed[:, : place.new].max(initial=-1))
        steps = int(at[0]) - before
        beside = place.old_text == place.old - 1
        holds(len(set(at.tolist())) == 1, f"text at position {place.new} has the positions {at.tolist()}")
        holds(steps == 1 if beside else steps >= 1, f"text at position {place.new} stands at {at[0]}, behind {before}")


@requirement("PRUNING-16", needs="prune_positions", cases=ANYWHERE, level=SHOULD)
def test_text_keeps_its_positions(engine: Engine, case: Pruned) -> None:
    """Text SHOULD keep its positions, so that the model sees the distances of a prompt that is not pruned."""
    observed, _ = engine.prune_positions(case.positions.copy(), case.items, case.masks)
    text = [place for place in oracle.places(case) if place.is_text]
    equal(
        observed[:, [place.new for place in text]].T.copy(),
        case.positions[:, [place.old for place in text]].T.copy(),
        "the positions of text",
        where=lambda n: f"position {text[n].new}",
    )


@requirement("PRUNING-17", needs="prune_positions", cases=ANYWHERE, bugs=("V01",))
def test_the_next_token_stands_behind_all(engine: Engine, case: Pruned) -> None:
    """The delta MUST be the largest position + 1 - the length of the pruned prompt: the next token stands behind all."""
    observed, delta = engine.prune_positions(case.positions.copy(), case.items, case.masks)
    equal(delta, int(observed.max()) + 1 - len(oracle.survivors(case)), "the delta")


@requirement("PRUNING-18", needs="prune_positions", cases=WHOLE, bugs=("evs-video-then-image-mrope",))
def test_without_pruning_positions_stay(engine: Engine, case: Pruned) -> None:
    """Where every token is kept, positions and delta MUST be those of the prompt before pruning."""
    observed, delta = engine.prune_positions(case.positions.copy(), case.items, case.masks)
    equal(observed.T.copy(), np.ascontiguousarray(case.positions.T), "the positions")
    equal(delta, int(case.positions.max()) + 1 - len(case.input_ids), "the delta")
