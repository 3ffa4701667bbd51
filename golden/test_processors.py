"""What transformers' processors return for whole prompts."""

import numpy as np

from conformance.suite.processors_cases import Known
from conformance.world.processors import Prompt
from golden.vectors import vectors
from reference.items import Span


@vectors("PROCESSORS-01")
def test_the_ids_of_expanded_prompts(given: list[str], expected: list[int]) -> Known:
    family, text = given
    return Known(Prompt(family, text), lambda: np.array(expected, dtype=np.int64))


@vectors("PROCESSORS-02")
def test_the_spans_of_media(given: list[str], expected: list[list[tuple[int, int]]]) -> Known:
    family, text = given
    return Known(Prompt(family, text), lambda: [tuple(Span(*pair) for pair in spans) for spans in expected])
