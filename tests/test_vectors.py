"""Vectors follow their schema, belong to requirements, and agree with the rules' own oracles."""

import json
from pathlib import Path

import jsonschema
import pytest

from conformance.suite import requirements
from golden.vectors import FOLDER, load

SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
STAGES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "schema")


@pytest.mark.parametrize("stage", STAGES)
def test_a_vector_file_follows_its_schema(stage: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(load(stage), SCHEMA)


@pytest.mark.parametrize("stage", STAGES)
def test_every_vector_has_a_requirement_of_its_stage_and_a_name_of_its_own(stage: str) -> None:
    vectors = load(stage)["vectors"]
    assert {requirements[vector["requirement"]].stage for vector in vectors} == {stage}
    assert len({(vector["requirement"], vector["name"]) for vector in vectors}) == len(vectors)


@pytest.mark.parametrize("stage", STAGES)
def test_every_vector_is_run(stage: str) -> None:
    tests = (Path(FOLDER).parent / f"test_{stage}.py").read_text(encoding="utf-8")
    assert all(f'"{id}"' in tests for id in {vector["requirement"] for vector in load(stage)["vectors"]})
