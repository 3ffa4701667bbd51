"""Every carrier that can be opened here keeps the rules about carriers; one whose package is missing says which."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import trial
from conformance.adapters.reference import ReferenceEngine
from conformance.engine import Traits
from conformance.suite import requirements
from conformance.trial import Verdict
from reference.disaggregation.carriers import KINDS, NoOffer, PackageMissing, open_carrier
from reference.disaggregation.registered import RegisteredCarrier

HOME = Path(__file__).parent.parent
RULES = ("DISAGGREGATION-09", "DISAGGREGATION-10", "DISAGGREGATION-11")


def kinds_here() -> list[str]:
    """The kinds whose packages are installed and can be loaded."""
    found = []
    for kind in KINDS:
        try:
            open_carrier(kind).close()
        except PackageMissing:
            continue
        found.append(kind)
    return found


@pytest.mark.parametrize("kind", kinds_here())
@pytest.mark.parametrize("id", RULES)
def test_a_carrier_keeps_the_rules(kind: str, id: str) -> None:
    engine = type("Engine", (ReferenceEngine,), {"traits": Traits(carriers=(kind,))})()
    outcomes = [trial.run(requirements[id], case, engine, spec=kind) for case in requirements[id].cases.values()]
    assert {outcome.message for outcome in outcomes if outcome.verdict is not Verdict.PASS} == set()


@pytest.mark.parametrize("kind", kinds_here())
def test_a_carrier_reads_what_another_offers(kind: str) -> None:
    one, other = open_carrier(kind), open_carrier("memory" if kind == "memory" else kind)
    other = one if kind == "memory" else other
    rows = torch.arange(1 << 18).reshape(512, 512)
    ticket = one.offer(rows)
    assert len(ticket) <= 4096
    assert torch.equal(other.fetch(ticket), rows)
    one.withdraw(ticket)
    with pytest.raises(NoOffer):
        other.fetch(ticket)
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [("mooncake", "mooncake.engine", "mooncake-transfer-engine"), ("nixl", "nixl._api", "nixl")],
)
def test_a_missing_package_is_named(kind: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    with pytest.raises(PackageMissing, match=f"needs the package {package}, .*: pip install {package}"):
        open_carrier(kind)


class Shelf:
    """A library whose memory is a dictionary, in which a place may come to hold something else."""

    def __init__(self) -> None:
        self.buffers: dict[int, torch.Tensor] = {}
        self.closed = 0

    def register(self, buffer: torch.Tensor) -> dict[str, Any]:
        self.buffers[0] = buffer
        return {"number": 0}

    def unregister(self, buffer: torch.Tensor) -> None:
        """The place stays readable: some libraries look at nothing."""

    def read(self, place: dict[str, Any], buffer: torch.Tensor) -> None:
        buffer[:] = self.buffers[place["number"]][: len(buffer)]

    def close(self) -> None:
        self.closed += 1


def test_rows_are_not_taken_from_a_place_that_holds_something_else() -> None:
    library = Shelf()
    carrier = RegisteredCarrier(library)
    first = carrier.offer(torch.zeros(4))
    second = carrier.offer(torch.ones(4))
    assert torch.equal(carrier.fetch(second), torch.ones(4))
    with pytest.raises(NoOffer, match="something else is there by now"):
        carrier.fetch(first)
    carrier.withdraw(second)
    with pytest.raises(NoOffer, match="something else is there by now"):
        carrier.fetch(second)
    carrier.close()
    carrier.close()
    assert library.closed == 1
    with pytest.raises(RuntimeError, match="closed"):
        carrier.offer(torch.ones(1))
    with pytest.raises(NoOffer, match="this carrier is closed"):
        carrier.fetch(second)


OFFERER = """
import sys, torch
from reference.disaggregation.carriers import open_carrier

carrier = open_carrier(sys.argv[1])
ticket = carrier.offer(torch.arange(1 << 18, dtype=torch.bfloat16).reshape(512, 512))
print(ticket.hex(), flush=True)
sys.stdin.readline()
carrier.withdraw(ticket)
print("withdrawn", flush=True)
sys.stdin.readline()
carrier.close()
"""


@pytest.mark.parametrize("kind", [kind for kind in kinds_here() if kind != "memory"])
def test_a_carrier_reads_what_another_process_offers(kind: str) -> None:
    command = [sys.executable, "-c", OFFERER, kind]
    with subprocess.Popen(command, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as offerer:
        assert offerer.stdin is not None
        assert offerer.stdout is not None
        said = (line.strip() for line in offerer.stdout)
        ticket = bytes.fromhex(next(line for line in said if line and set(line) <= set("0123456789abcdef")))
        carrier = open_carrier(kind)
        rows = torch.arange(1 << 18, dtype=torch.bfloat16).reshape(512, 512)
        assert torch.equal(carrier.fetch(ticket), rows)
        assert torch.equal(carrier.fetch(ticket), rows)
        print(file=offerer.stdin, flush=True)
        next(line for line in said if line == "withdrawn")
        with pytest.raises(NoOffer):
            carrier.fetch(ticket)
        print(file=offerer.stdin, flush=True)
        carrier.close()
