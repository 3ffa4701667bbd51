"""What a cache of embeddings is asked, in what order (see `conformance.oracles.encoder_cache`)."""

from collections.abc import Sequence

from hypothesis import strategies as st

from conformance.oracles.encoder_cache import ROW_BYTES, ListCache, Script, Step, key, play

LARGEST = 5
"""An entry has 1 to so many rows."""


@st.composite
def scripts(choose: st.DrawFn, operations: Sequence[str] = ("put", "get"), oversized: bool = False) -> Script:
    """Up to 30 of these operations on four keys; shrinks to few, on the key a and with one row.

    A key always stands for the same rows. They are at most as many as there is room for, unless `oversized`. Only what
    is there is pinned, and only what is pinned is unpinned.
    """
    capacity = choose(st.integers(1, 2 * LARGEST))
    largest = LARGEST if oversized else min(LARGEST, capacity)
    rows = {name: choose(st.integers(1, largest)) for name in "abcd"}
    steps: list[Step] = []
    model = ListCache(capacity * ROW_BYTES)
    for _ in range(choose(st.integers(1, 30))):
        name = choose(st.sampled_from("abcd"))
        step = Step(choose(st.sampled_from(operations)), name, rows[name])
        pins = sum(entry.pins for entry in model.entries if entry.key == key(step.key))
        there = any(entry.key == key(step.key) for entry in model.entries)
        if step.operation == "clear":
            step = Step("clear")
        elif (step.operation == "pin" and not there) or (step.operation == "unpin" and not pins):
            step = step._replace(operation="put")
        elif step.operation in ("pin", "unpin"):
            step = Step(step.operation, step.key)
        play(model, [step])
        steps.append(step)
    return Script(capacity, tuple(steps))
