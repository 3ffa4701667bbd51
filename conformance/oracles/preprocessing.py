"""What is obviously right about preprocessing: a list of runs, looked through from end to end for every question."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Step(NamedTuple):
    """One thing that happens: somebody submits a medium or cancels a ticket, a run ends, or all is cleared."""

    operation: str
    what: str = ""

    def __str__(self) -> str:
        return f"{self.operation} {self.what}".strip()


class State(NamedTuple):
    """Where things stand after a step.

    begun: the media on which runs have begun, in this order. ended: the tickets that have an outcome since this step, and
    the outcomes: "a 2" is the result of the second run on a; others are "failed", "cancelled" and "refused".
    """

    begun: tuple[str, ...]
    ended: dict[int, str]


class Script(NamedTuple):
    """What happens to a preprocessor with so many workers and places, and room for all results.

    measured: the states after each step, where they are known from elsewhere; else the model below says what is right.
    """

    workers: int
    queued: int
    steps: tuple[Step, ...]
    measured: tuple[State, ...] = ()

    def where(self, number: int) -> str:
        return f"step {number} ({self.steps[number]})"


def script(workers: int, queued: int, *steps: str) -> Script:
    """Read a script: `submit a`, `cancel 0` (the ticket of the first submission), `finish a` and `fail a` (the run on a
    that began first of those that have not ended), `clear`."""
    return Script(workers, queued, tuple(Step(*step.split()) for step in steps))


@dataclass(eq=False)
class Run:
    """One run: who waits for it, whether a clear came since it was submitted, and how it stands."""

    medium: str
    waiters: list[int]
    number: int = 0
    cleared: bool = False
    stands: str = "waiting"  # then "running", then "kept" or "over"


@dataclass
class RunList:
    """The right states."""

    workers: int
    queued: int
    runs: list[Run] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    tickets: int = 0

    def states(self, steps: Sequence[Step]) -> list[State]:
        """The state after each step."""
        return [self.after(step) for step in steps]

    def after(self, step: Step) -> State:
        """The state after one more step."""
        ended = self._take(step)
        for run in self.these("waiting"):
            if len(self.these("running")) < self.workers:
                run.stands = "running"
                self.begun.append(run.medium)
                run.number = self.begun.count(run.medium)
        return State(tuple(self.begun), ended)

    def these(self, stands: str) -> list[Run]:
        """The runs that stand like this, in the order of their submission."""
        return [run for run in self.runs if run.stands == stands]

    def _take(self, step: Step) -> dict[int, str]:
        match step.operation:
            case "submit":
                return self._submit(step.what)
            case "cancel":
                return self._cancel(int(step.what))
            case "clear":
                for run in self.runs:
                    run.cleared = True
                return {}
        run = next(run for run in self.these("running") if run.medium == step.what)
        run.stands = "kept" if step.operation == "finish" else "over"
        outcome = f"{run.medium} {run.number}" if step.operation == "finish" else "failed"
        return dict.fromkeys(run.waiters, outcome)

    def _submit(self, medium: str) -> dict[int, str]:
        ticket, self.tickets = self.tickets, self.tickets + 1
        for run in self.runs:
            if run.medium == medium and not run.cleared and run.stands != "over":
                run.waiters.append(ticket)
                return {ticket: f"{medium} {run.number}"} if run.stands == "kept" else {}
        if len(self.these("running")) == self.workers and len(self.these("waiting")) == self.queued:
            return {ticket: "refused"}
        self.runs.append(Run(medium, [ticket]))
        return {}

    def _cancel(self, ticket: int) -> dict[int, str]:
        for run in [*self.these("waiting"), *self.these("running")]:
            if ticket in run.waiters:
                run.waiters.remove(ticket)
                if not run.waiters and run.stands == "waiting":
                    run.stands = "over"
                return {ticket: "cancelled"}
        return {}


def drained(given: Script) -> Script:
    """The script, and then each run finished until none is left."""
    model, steps = RunList(given.workers, given.queued), list(given.steps)
    model.states(steps)
    while running := model.these("running"):
        steps.append(Step("finish", running[0].medium))
        model.after(steps[-1])
    return given._replace(steps=tuple(steps))


UNIT = 1 << 16
"""So many bytes are one unit of a result: what an engine counts beside its payload does not matter beside it."""


def units(medium: str) -> int:
    """The size of a result: one unit for a small letter, three for a capital one."""
    return 3 if medium.isupper() else 1


def runs_of_uses(room: int, order: str) -> list[int]:
    """How often work has begun after each use, where media are used one after another and `room` units are kept."""
    kept: list[str] = []  # the one that was used longest ago comes first
    runs = 0
    so_far = []
    for medium in order:
        if medium in kept:
            kept.remove(medium)
        else:
            runs += 1
        if units(medium) <= room:
            while sum(map(units, kept)) + units(medium) > room:
                kept.pop(0)
            kept.append(medium)
        so_far.append(runs)
    return so_far
