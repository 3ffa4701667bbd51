"""tox loads this file by itself. It adds a runner with which several environments use one virtualenv.

tox makes a virtualenv anew when the environment's name differs from the one recorded in it. torch is too large to be
installed once per environment, so this runner leaves the name out of that comparison.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tox.plugin import impl
from tox.tox_env.info import Info
from tox.tox_env.python.virtual_env.runner import VirtualEnvRunner
from tox.tox_env.register import ToxEnvRegister


class NamelessInfo(Info):
    """What tox remembers of a virtualenv, without the name of the environment that made it."""

    @contextmanager
    def compare(self, value: Any, section: str, sub_section: str | None = None) -> Iterator[tuple[bool, Any]]:
        if section == "ToxEnv" and isinstance(value, dict):
            value = {key: part for key, part in value.items() if key != "name"}
        with super().compare(value, section, sub_section) as result:
            yield result


class SharedRunner(VirtualEnvRunner):
    """`runner = shared` in tox.ini."""

    @staticmethod
    def id() -> str:
        return "shared"

    @property
    def cache(self) -> Info:
        return NamelessInfo(self.env_dir)


@impl
def tox_register_tox_env(register: ToxEnvRegister) -> None:
    register.add_run_env(SharedRunner)
