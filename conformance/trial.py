"""A trial: one rule, one case, one engine, and how it ended."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from conformance.requirement import Requirement
from conformance.witness import Answer, Witness


class Verdict(IntEnum):
    """How a requirement, or one case of it, ended. Smaller is worse."""

    ERROR = 0
    """The suite's own fault. Never counted against an engine."""
    FAIL = 1
    UNEXPECTED_PASS = 2
    """Listed as a known failure, but it holds: the list is wrong."""
    KNOWN_FAILURE = 3
    NOT_APPLICABLE = 4
    """The engine has no such method."""
    PASS = 5

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case ended: PASS, FAIL or ERROR, what was wrong, and everything that the engine said."""

    verdict: Verdict
    message: str = ""
    answers: tuple[Answer, ...] = field(default=(), repr=False)


def judge(error: BaseException | None, answers: list[Answer]) -> Outcome:
    """The outcome of a rule that ended with this exception, or without one.

    Assertions, and what an engine raised or misanswered, count against the engine; everything else against the suite.
    """
    if error is None:
        return Outcome(Verdict.PASS, "", tuple(answers))
    if isinstance(error, AssertionError):
        return Outcome(Verdict.FAIL, _printable(_words(error)) or "the rule does not hold", tuple(answers))
    return Outcome(Verdict.ERROR, _printable(f"{type(error).__name__}: {error}"), tuple(answers))


def _words(error: BaseException) -> str:
    """What an error says, and the case that a search noted on it."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def _printable(text: str) -> str:
    """The text without characters that a terminal obeys or XML forbids: an engine may have put them into an error."""
    return "".join(
        character if character.isprintable() or character == "\n" else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def run(requirement: Requirement, case: Any, engine: Any, *, spec: str | None = None) -> Outcome:
    """Run one rule on one case in this process, outside pytest."""
    witness = Witness(engine, spec=spec)
    try:
        requirement.rule(witness, case)
    except Exception as error:
        return judge(error, witness.answers)
    finally:
        witness.put_back()
    return judge(None, witness.answers)
