"""The pytest plugin, for running the rules among one's own tests.

It stays inert unless `--mmproof-engine` is given:

    pytest --pyargs conformance.suite --mmproof-engine my.module:Engine

`mmproof run` does the same with a report; this is for those who want pytest's own.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mmproof", "conformance of multimodal serving engines")
    group.addoption(
        "--mmproof-engine", metavar="ENGINE", help="NAME, module:object, path.py:object, worker:COMMAND, quirk:NAME"
    )
    group.addoption("--mmproof-profile", metavar="PROFILE", choices=("core", "sglang"), help="default: the engine's own")


def pytest_configure(config: pytest.Config) -> None:
    spec = config.getoption("--mmproof-engine")
    if spec is None:
        return
    # only now: an inert plugin must not cost anybody the import of torch
    from conformance.engine import EngineNotLoaded, Profile, Traits
    from conformance.loading import load
    from conformance.session import Selection, Session

    try:
        engine = load(spec)
    except EngineNotLoaded as error:
        raise pytest.UsageError(str(error)) from error
    profile = config.getoption("--mmproof-profile") or getattr(engine, "traits", Traits()).profile
    config.pluginmanager.register(Session(engine, spec, Selection(profile=Profile(profile))), "mmproof-session")
