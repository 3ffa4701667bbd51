"""What a prompt of a million positions with ten thousand pictures costs: the engine, and a loop over all positions.

Each step has a table of its own. `python -m perf.million` prints ratios, exponents and memory.
"""

from typing import Any

import pytest

from perf.million import CASES, POSITIONS, prompt
from perf.sized import Asked


def steps() -> list[Any]:
    marks = {name: (pytest.mark.benchmark(group=name), pytest.mark.needs(*case.needs)) for name, case in CASES.items()}
    return [pytest.param(name, marks=marks[name]) for name in CASES]


@pytest.mark.parametrize("name", steps())
def test_the_engine(engine: Any, benchmark: Any, name: str) -> None:
    benchmark(CASES[name].ask(Asked(engine.subject), prompt(POSITIONS)))


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.benchmark(group=name)) for name in CASES])
def test_the_loop(engine: Any, benchmark: Any, name: str) -> None:
    benchmark(CASES[name].walk(prompt(POSITIONS), Asked(engine.subject)))
