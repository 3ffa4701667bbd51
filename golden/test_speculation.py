"""Look-ups of n-grams, measured on vLLM."""

from typing import Any

import numpy as np

from conformance.cases import Exact
from conformance.suite.speculation_cases import Lookup
from conformance.world.prompts import Prompt
from golden.vectors import vectors


@vectors("SPECULATION-16")
def test_the_longest_match(given: dict[str, Any], expected: list[int]) -> Exact:
    prompt = Prompt(np.array(given["input_ids"], dtype=np.int64), ())
    answer = Prompt(np.array(expected, dtype=np.int64), ())
    return Exact(Lookup(prompt, given["shortest"], given["longest"], given["count"]), answer)
