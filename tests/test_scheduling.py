"""What the reference promises beyond the requirements, errors that say where and what; and rules that take traits."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.suite import requirements
from conformance.world.prompts import draw
from reference.items import Chunk
from reference.scheduling import Budget, NeverSchedulable, encoder_lengths, plan_chunks, plan_steps


@pytest.mark.parametrize(
    ("drawing", "knobs", "message"),
    [
        ("..iiiii.", {"embeddings_per_step": 4}, r"position 2 of 8: embeddings_per_step=4 .* fills 5 positions from 2 on"),
        ("..iiiii.", {"embeddings_kept": 4}, r"position 2 of 8: embeddings_kept=4 "),
        ("..iiiii.", {"tokens_per_step": 4, "whole_items": True}, r"position 2 of 8: tokens_per_step=4 or whole_items=True "),
        (
            "........",
            {"tokens_per_step": 4, "alignment_tokens": 6},
            r"position 0 of 8: tokens_per_step=4 or alignment_tokens=6 ",
        ),
        (
            "iiii.jjjj",
            {"embeddings_kept": 4, "alignment_tokens": 3},
            r"position 3 of 9: embeddings_kept=4 or alignment_tokens=3",
        ),
        ("iiiii", {"embeddings_per_step": 4, "embeddings_kept": 3}, r"embeddings_per_step=4 or embeddings_kept=3 "),
        ("iiiii", {"kv_tokens": 4}, r"kv_tokens=4 is too small for 5 positions, media included"),
    ],
)
def test_a_refusal_names_the_knob_and_the_place(drawing: str, knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(NeverSchedulable, match=message):
        plan_chunks(len(drawing), draw(drawing).items, Budget(**{"tokens_per_step": 8, **knobs}))


def test_a_request_of_a_line_is_refused_by_its_number() -> None:
    with pytest.raises(NeverSchedulable, match="request 1: kv_tokens=4"):
        plan_steps([(3, ()), (5, ())], Budget(tokens_per_step=8, kv_tokens=4))


@pytest.mark.parametrize(
    ("chunk", "ids", "message"),
    [
        (Chunk(2, 5), 5, "request 0: .* divides an encoder part of 4 positions"),
        (Chunk(0, 3), 3, "request 0: .* divides an encoder part of 4 positions"),
        (Chunk(0, 5), 6, "request 0: 6 ids for"),
    ],
)
def test_an_encoder_error_names_the_request(chunk: Chunk, ids: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoder_lengths([(np.arange(ids, dtype=np.int64), chunk, 4)])


@pytest.mark.parametrize("knobs", [{"tokens_per_step": 0}, {"alignment_tokens": 0}, {"embeddings_kept": -1}])
def test_a_budget_has_limits_that_something_can_meet(knobs: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(knobs))} is at least"):
        Budget(**{"tokens_per_step": 8, **knobs})


def test_a_prefix_lies_in_the_prompt() -> None:
    with pytest.raises(ValueError, match="0 to 3 positions, not 4"):
        plan_chunks(3, (), Budget(tokens_per_step=8), prefix=4)


class NeverSplits(ReferenceEngine):
    """An engine of which no chunk ends inside an item, asked for or not."""

    traits = replace(ReferenceEngine.traits, splits_items=False)

    @staticmethod
    def plan_chunks(length: int, items: Any, budget: Any, prefix: int) -> list[Chunk]:
        return plan_chunks(length, items, Budget(**{**asdict(budget), "whole_items": True}), prefix)


class CountsTokens(ReferenceEngine):
    """An engine that has no limit but the tokens of a step."""

    traits = replace(ReferenceEngine.traits, knobs=("tokens_per_step",))

    @staticmethod
    def plan_chunks(length: int, items: Any, budget: Any, prefix: int) -> list[Chunk]:
        if Budget(**asdict(budget)) != Budget(tokens_per_step=budget.tokens_per_step):
            raise ValueError("there is no such limit")
        return plan_chunks(length, (), Budget(tokens_per_step=budget.tokens_per_step), prefix)


@pytest.mark.parametrize("id", [id for id, one in requirements.items() if one.needs == ("plan_chunks",)])
@pytest.mark.parametrize("engine", [NeverSplits(), CountsTokens()], ids=["never-splits", "counts-tokens"])
def test_the_rules_are_fair_to_other_designs(engine: ReferenceEngine, id: str) -> None:
    outcomes = [trial.run(requirements[id], case, engine) for case in requirements[id].cases.values()]
    assert {outcome.message for outcome in outcomes if outcome.verdict is not trial.Verdict.PASS} == set()
