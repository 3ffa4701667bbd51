"""The walls between the rooms: who may import whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
ROOMS = ("reference", "conformance", "golden", "fuzz", "perf")
ORDER = (
    "items", "media", "planning", "identity", "sentinels", "placeholders", "processors", "preprocessing", "positions",
    "prefix_cache", "scheduling", "encoder_cache", "encoding", "pruning", "merging", "pipeline_ranks", "speculation",
    "transport", "lifecycle", "parallel", "disaggregation", "kernels", "pipeline", "serving",
)  # fmt: skip
"""The stages of the reference in the order in which data flows; each imports only what stands before it."""

MAY_KNOW_THE_REFERENCE = ("conformance/adapters/reference.py", "conformance/quirks/")


def modules(folder: str) -> list[Path]:
    return sorted((HOME / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """The full names of everything that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms_of(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)} & set(ROOMS)


def test_the_reference_knows_nobody() -> None:
    assert {path.name: rooms_of(path) - {"reference"} for path in modules("reference") if rooms_of(path) - {"reference"}} == {}


@pytest.mark.parametrize("path", modules("reference"), ids=lambda path: path.stem)
def test_a_stage_imports_only_stages_before_it(path: Path) -> None:
    stage = path.relative_to(HOME / "reference").parts[0].removesuffix(".py")
    upstream = ORDER[: ORDER.index(stage)] if stage != "__init__" else ()
    used = {name.split(".")[1] for name in imports(path) if name.startswith("reference.")} - {stage}
    assert used <= set(upstream)


def test_only_the_adapter_and_the_quirks_know_a_stage_of_the_reference() -> None:
    for path in modules("conformance"):
        place = path.relative_to(HOME).as_posix()
        used = {name.split(".")[1] for name in imports(path) if name.startswith("reference.")} - {"items"}
        assert not used or place.startswith(MAY_KNOW_THE_REFERENCE), f"{place} imports reference.{used}"


@pytest.mark.parametrize("room", ["golden", "fuzz", "perf"])
def test_the_outer_rooms_know_conformance_and_not_one_another(room: str) -> None:
    for path in modules(room):
        used = {name for name in imports(path) if name.partition(".")[0] in ROOMS}
        assert all(name.startswith((f"{room}.", "conformance.", "reference.items")) for name in used), path


def test_no_file_of_the_product_knows_the_tests() -> None:
    for room in ROOMS:
        assert not [path for path in modules(room) if any(name.startswith("tests") for name in imports(path))]


def test_no_pickle_is_read_or_written() -> None:
    for room in ROOMS:
        assert not [path for path in modules(room) if {"pickle", "dill", "cloudpickle"} & set(imports(path))]
