"""Who waits, who leaves and what is cleared, measured on SGLang."""

from typing import Any

from conformance.oracles.preprocessing import Script, State, script
from golden.vectors import vectors


@vectors("PREPROCESSING-12")
def test_states_of_a_script(given: dict[str, Any], expected: list[dict[str, Any]]) -> Script:
    states = [State(tuple(one["begun"].split()), {int(n): what for n, what in one["ended"].items()}) for one in expected]
    return script(given["workers"], given["queued"], *given["steps"])._replace(measured=tuple(states))
