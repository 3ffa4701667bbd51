"""Take one sentence's worth of behaviour out of the reference, and a requirement turns red.

Each mutation is an edit of one place in `reference`. A copy with that edit is put to the rule in a process of its own: the
fork of a server that has imported the rules, but no stage of the reference, so that it costs a moment and not seconds.
"""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import mutations
from tests.mutations import Mutation

HOME = Path(__file__).parent.parent

SERVER = """
import importlib, json, os, sys
from conformance import trial
from conformance.suite import requirements
from conformance.world.checkpoint import tiny_qwen2_vl
import reference.items
tiny_qwen2_vl()
assert not [name for name in sys.modules if name.startswith("reference.") and name != "reference.items"]

def verdicts(folder, id):
    reference.__path__ = [folder + "/reference"]
    engine = importlib.import_module("conformance.adapters.reference").ReferenceEngine()
    used = [module.__file__ for name, module in sys.modules.items() if name.startswith("reference.")]
    assert all(file.startswith(folder) for file in used if not file.endswith("items.py")), used
    one = requirements[id]
    return sorted({str(trial.run(one, case, engine).verdict) for case in one.cases.values()})

for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print(flush=True)
        continue
    try:
        print(json.dumps(verdicts(*json.loads(line))), end="", flush=True)
    except BaseException as error:
        print(json.dumps([f"{type(error).__name__}: {error}"]), end="", flush=True)
    os._exit(0)
"""

Try = Callable[[Path, str], list[str]]
"""A folder with a copy of the reference, and a requirement: how its cases end."""


@pytest.fixture(scope="module")
def attempt() -> Iterator[Try]:
    environment = {**os.environ, "PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ask, answers = server.stdin, server.stdout

        def one(folder: Path, id: str) -> list[str]:
            print(json.dumps([str(folder), id]), file=ask, flush=True)
            verdicts: list[str] = json.loads(answers.readline())
            return verdicts

        yield one
        ask.close()


MUTATIONS = [
    mutation
    for stage in pkgutil.iter_modules(mutations.__path__, "tests.mutations.")
    for mutation in importlib.import_module(stage.name).MUTATIONS
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the reference."""
    shutil.copytree(HOME / "reference", tmp_path / "reference", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.loss)
def test_a_loss_turns_a_requirement_red(mutation: Mutation, copy: Path, attempt: Try) -> None:
    module = copy / "reference" / f"{mutation.module}.py"
    text = module.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "the place of the mutation must be there, once"
    module.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    verdicts = attempt(copy, mutation.caught_by)
    assert "fail" in verdicts, verdicts
    assert set(verdicts) <= {"fail", "pass"}, verdicts


def test_an_unharmed_copy_holds(copy: Path, attempt: Try) -> None:
    one_a_stage = {mutation.module: mutation.caught_by for mutation in MUTATIONS}.values()
    assert {id: attempt(copy, id) for id in one_a_stage} == {id: ["pass"] for id in one_a_stage}
