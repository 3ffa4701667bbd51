"""In this repository pytest runs the rules, the vectors, the searches and the measurements against the reference."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--mmproof-engine") is None:
        config.option.mmproof_engine = "reference"
