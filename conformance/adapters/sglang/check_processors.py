"""What SGLang 0.5.23 gets wrong as it looks for a processor: seen without the suite."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from conformance.adapters.checks import Checks
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import sg

CHECKS = Checks()
fails = CHECKS.fails


def registry() -> Any:
    sg()
    return cpu.module("sglang.srt.managers.multimodal_processor")


@fails("PROCESSORS-22")
def the_registry_decides() -> bool:
    """Of two architectures the one that was registered first is served, not the one that the checkpoint names first."""
    known = {type("First", (), {}): "first", type("Last", (), {}): "last"}
    with patch.dict(registry().PROCESSOR_MAPPING, known, clear=True):
        return bool(registry().get_mm_processor_cls(SimpleNamespace(architectures=["Last", "First"])) == "first")


@fails("PROCESSORS-24")
def a_broken_module_is_unknown() -> bool:
    """A processor whose module cannot be imported is not registered; why, stands in the log alone."""
    known = registry()
    with (
        TemporaryDirectory() as folder,
        patch.object(sys, "path", [folder, *sys.path]),
        patch.dict(sys.modules),
        patch.dict(known.PROCESSOR_MAPPING, clear=True),
    ):
        (Path(folder) / "processors_of_a_check").mkdir()
        (Path(folder) / "processors_of_a_check" / "broken.py").write_text("from os import AutoTensor")
        known.import_processors("processors_of_a_check")
        try:
            known.get_mm_processor(SimpleNamespace(architectures=["Broken"]), None, None, "default")
        except ValueError as refusal:
            return "AutoTensor" not in str(refusal)
    return False
