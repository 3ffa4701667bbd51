"""The run of faults: it counts what is there, and sees an engine that leaves things behind."""

from conformance.adapters.reference import ReferenceEngine
from conformance.faults import VICTIMS, run, table, values
from conformance.oracles.transport import described_all
from conformance.quirks import quirks


def test_nothing_of_the_reference_is_lost_or_left() -> None:
    tallies = dict(run(ReferenceEngine(), 6, seed=3))
    assert sum(one.transfers for one in tallies.values()) == 6
    assert {*tallies} <= {*VICTIMS}
    assert all(one.holds for one in tallies.values())
    assert table(tallies).row_count == len(tallies)


def test_what_nobody_sweeps_is_seen() -> None:
    tallies = dict(run(quirks["nobody-sweeps"].engine(), 4, seed=3))
    assert sum(one.left_after_the_next_start for one in tallies.values()) > 0
    assert not all(one.holds for one in tallies.values())


def test_a_seed_says_what_is_sent() -> None:
    assert described_all(values(7)) == described_all(values(7))
    assert len({str(described_all(values(seed))) for seed in range(9)}) == 9
