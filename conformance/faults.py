"""A run of faults: transfers during which a process is killed, at a random moment, and what becomes of everything.

    mmproof faults --engine acme.py:Engine --transfers 1000 --seed 0

In each transfer a process opens a channel and sends lists of features to a fork of itself, of all sizes, more than there is
room for. The sender, the reader or both are killed (SIGKILL) somewhere on the way. Who is left must come to an end within
`HANG_S`; what the reader receives until then is right or refused; and when another channel has been opened and closed,
nothing is left in shared memory. Whom and when to kill is drawn from the seed.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import monotonic, sleep
from typing import Any

from rich.table import Table

from conformance.oracles.transport import Watch, described_all
from conformance.suite.transport_bench import ROOM, told, usable
from conformance.suite.transport_cases import numbers
from conformance.suite.transport_processes import Pipe, Voice, fork, line
from conformance.witness import Witness

HANG_S = 5.0
LISTS = 12
SIZES_BYTES = (100, 4096, 70_000, ROOM // 4, ROOM // 2, ROOM)

VICTIMS = ("sender", "reader", "both")


@dataclass
class Tally:
    """What became of the transfers in which one victim was killed."""

    transfers: int = 0
    received: Counter[str] = field(default_factory=Counter)
    hangs: int = 0
    left_by_the_dead: int = 0
    left_after_the_next_start: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.hangs or self.left_after_the_next_start or self.received["wrong"])


def run(engine: Any, transfers: int, seed: int) -> Iterator[tuple[str, Tally]]:
    """The victim and the tally of its kind after each transfer."""
    random, tallies = Random(seed), {victim: Tally() for victim in VICTIMS}
    witness, watch = Witness(engine), Watch()
    usual_s = max(_transfer(witness, watch, "nobody", 0.0, 0, Tally()) for _ in range(3))
    for number in range(transfers):
        victim = random.choice(VICTIMS)
        delay_s = random.uniform(0, usual_s)
        _transfer(witness, watch, victim, delay_s, number, tallies[victim])
        yield victim, tallies[victim]


def table(tallies: dict[str, Tally]) -> Table:
    """The tallies as a table."""
    made = Table(box=None, pad_edge=False)
    for column in ("killed", "transfers", "lists right", "refused", "wrong", f"hangs over {HANG_S:g} s", "left", "left after"):
        made.add_column(column, justify="left" if column == "killed" else "right")
    for victim, one in tallies.items():
        counts = (one.transfers, one.received["right"], one.received["refused"], one.received["wrong"], one.hangs)
        made.add_row(victim, *map(str, (*counts, one.left_by_the_dead, one.left_after_the_next_start)))
    return made


def _transfer(engine: Any, watch: Watch, victim: str, delay_s: float, number: int, tally: Tally) -> float:
    """One transfer; how long it took until it was over."""
    tally.transfers += 1
    to_sender, to_reader = line(), line()

    def sends(pipe: Pipe) -> None:
        channel = engine.open_channel(usable(engine), 1, ROOM)
        direct = line()
        pid = fork(lambda inner: receives(inner, channel), direct)
        to_reader.let_go()
        pipe.say(pid)
        packets = Pipe(*direct.ours)
        for count in range(LISTS):
            packets.say([number + count, channel.send(values(number + count), 1)[0].hex()])
        pipe.say("sent")
        packets.hear()

    def receives(inner: Pipe, channel: Any) -> None:
        report = Voice(*to_reader.theirs)
        reader = channel.join(0, None)
        with suppress(EOFError):
            for _ in range(LISTS):
                seed, packet = inner.hear()
                observed = told(reader, bytes.fromhex(packet))
                right = described_all(values(seed))
                report.say("right" if observed == right else "refused" if observed == ["refused"] else "wrong")
        report.say("end")

    sender = fork(sends, to_sender)
    to_reader.let_go()
    sending, reading = (Pipe(*one.ours, patience_s=HANG_S) for one in (to_sender, to_reader))
    began = monotonic()
    reader = 0 if victim == "sender" else int(_heard(sending, tally))
    watch.processes |= {sender, reader} - {0}
    sleep(delay_s)
    for pid in {"sender": [sender], "reader": [reader], "both": [reader, sender]}.get(victim, []):
        _kill(pid)
    if victim in ("reader", "nobody"):
        _heard(sending, tally)
    while (word := _heard(reading, tally)) in ("right", "refused", "wrong"):
        tally.received[word] += 1
    over_s = monotonic() - began
    _kill(sender)
    os.waitpid(sender, 0)
    sending.close()
    reading.close()
    tally.left_by_the_dead += watch.count()
    engine.open_channel(usable(engine), 1, ROOM).close()
    tally.left_after_the_next_start += len(watch.left())
    watch.clean()
    return over_s


def values(seed: int) -> list[Any]:
    """A list of features, told from its seed."""
    random = Random(seed)
    return [
        None if not random.randrange(8) else numbers(seed + n, random.choice(SIZES_BYTES)) for n in range(random.randint(1, 3))
    ]


def _heard(pipe: Pipe, tally: Tally) -> Any:
    """What is said next; 0 at the end of the line, and when nothing is said in time, which is a hang."""
    try:
        kind, word = pipe.hear()
    except EOFError:
        return 0
    except TimeoutError:
        tally.hangs += 1
        return 0
    return word if kind == "said" else 0


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGKILL)
