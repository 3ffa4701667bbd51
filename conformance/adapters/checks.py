"""Checks: what an engine gets wrong, seen without the suite."""

from collections.abc import Callable
from typing import TypeAlias

Check: TypeAlias = Callable[[], bool]


class Checks(list[tuple[str, Check]]):
    """The requirements that a fault fails, and a function that says whether the fault is there; its docstring states it."""

    def fails(self, *requirements: str) -> Callable[[Check], Check]:
        """Register a check."""

        def register(check: Check) -> Check:
            self.append((", ".join(requirements), check))
            return check

        return register

    def run(self) -> int:
        """Print one line a finding. The exit status: 1 when one of them is not there any more."""
        missed = 0
        for requirements, check in self:
            seen = check()
            missed += not seen
            print(f"{'seen' if seen else 'NOT SEEN':8}  {requirements:44}  {' '.join((check.__doc__ or '').split())}")
        return 1 if missed else 0


def error(call: Callable[[], object]) -> str:
    """The name of the error that a call raises, or nothing."""
    try:
        call()
    except Exception as raised:
        return type(raised).__name__
    return ""
