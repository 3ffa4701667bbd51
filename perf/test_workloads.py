"""What each stage costs for requests as real traffic brings them (`perf/workloads.py`)."""

from functools import partial
from typing import Any

import pytest

from perf.sized import SIZED, Job, Sized, declare
from perf.workloads import PREFILLS, STEPS, WORKLOADS, prefilling, touches


def step(workload: str, stage: str, engine: Any) -> Job:
    return STEPS[stage].ask(engine, WORKLOADS[workload]())


NAMES = {}
for workload in WORKLOADS:
    for stage in STEPS:
        if touches(workload, stage):
            NAMES[f"{workload}: {stage}"] = Sized("workloads", STEPS[stage].needs, partial(step, workload, stage))
for workload in PREFILLS:
    NAMES[f"{workload}: pipeline"] = Sized("workloads", ("prefill",), partial(prefilling, workload=workload))
for name, case in NAMES.items():
    declare(name, case)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.needs(*case.needs)) for name, case in NAMES.items()])
def test_a_workload(engine: Any, benchmark: Any, name: str) -> None:
    benchmark(SIZED[name].prepare(engine))
