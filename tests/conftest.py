"""Which tests run side by side: not those that open shared memory, for whoever opens some sweeps what the dead left."""

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

OPEN_SHARED_MEMORY = ("test_transport", "test_serving", "test_disaggregation_carriers", "test_faults", "TRANSPORT-")
LOCK = Path(tempfile.gettempdir()) / "mmproof-tests-shared-memory.lock"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for whoever else opens shared memory, in whichever process."""
    if not opens_shared_memory(item):
        return (yield)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


def opens_shared_memory(item: pytest.Item) -> bool:
    """Whether a test is about shared memory: by its name, or by the requirement that it is about."""
    from conformance.quirks import quirks

    callspec = getattr(item, "callspec", None)
    parameters = callspec.params.values() if callspec else ()
    ids = [id for one in parameters if isinstance(one, str) and one in quirks for id in quirks[one].caught_by]
    ids += [str(one.caught_by) for one in parameters if hasattr(one, "caught_by")]
    return any(word in text for word in OPEN_SHARED_MEMORY for text in (item.nodeid, *ids))
