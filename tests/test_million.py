"""The loops that perf compares an engine with give its answers, so that the comparison is one of equals."""

from typing import Any

import numpy as np
import pytest

from conformance.loading import load
from perf.million import CASES, prompt


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("length", [1_000, 4_321])
def test_a_loop_answers_as_the_reference(name: str, length: int) -> None:
    case, one, engine = CASES[name], prompt(length), load("reference")
    observed, expected = case.walk(one, engine)(), case.ask(engine, one)()
    for ours, theirs in zip(*map(as_parts, (observed, expected)), strict=True):
        assert np.array_equal(ours, theirs)


def as_parts(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)
