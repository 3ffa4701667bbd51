"""Which tests run side by side: not those that open shared memory, for whoever opens some sweeps what the dead left."""

import pytest

OPEN_SHARED_MEMORY = ("test_transport", "test_serving", "test_disaggregation_carriers", "test_faults", "TRANSPORT-")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from conformance.quirks import quirks

    for item in items:
        parameters = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        ids = [id for one in parameters if isinstance(one, str) and one in quirks for id in quirks[one].caught_by]
        ids += [str(one.caught_by) for one in parameters if hasattr(one, "caught_by")]
        if any(word in text for word in OPEN_SHARED_MEMORY for text in (item.nodeid, *ids)):
            item.add_marker(pytest.mark.xdist_group("shared memory"))
