"""The engine's side: answers the suite's questions on standard input and output.

    python -m conformance.remote.worker SPEC

SPEC names the engine as `--engine` does. It needs Python 3.11, numpy, torch and Pillow, whatever their versions.
"""

import os
import sys
from typing import Any

from conformance.engine import METHODS, Engine, Traits
from conformance.loading import load
from conformance.remote import PROTOCOL
from conformance.remote.peer import Peer
from conformance.returns import Opens, WrongAnswer
from conformance.world.torchvision_cpu import complete_torchvision

FORKED = ("open_channel", "open_device_channel")
"""What a worker does not offer: rules about channels fork the process in which the channel is, and kill it."""


class Subject:
    """An engine, or what it opened. Answers are read here, where their types are known, and go out in canonical form.

    methods_there: the names of the methods that it has.
    """

    def __init__(self, subject: Any, protocol: type) -> None:
        self._subject, self._protocol = subject, protocol
        declared = METHODS if protocol is Engine else [name for name, one in vars(protocol).items() if hasattr(one, "reader")]
        self.methods_there = [one for one in declared if one not in FORKED and callable(getattr(subject, one, None))]

    def __getattr__(self, method: str) -> Any:
        reader = getattr(self._protocol, method).reader

        def ask(*arguments: Any) -> Any:
            made = getattr(self._subject, method)(*[one._subject if isinstance(one, Subject) else one for one in arguments])
            try:
                answer = reader(made)
            except WrongAnswer:
                return made  # the suite reads it once more, and says what is wrong
            return Subject(answer, reader.protocol) if isinstance(reader, Opens) else answer

        return ask


class Root:
    """What the suite knows from the beginning: object 0."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def describe(self) -> dict[str, Any]:
        """Who is here."""
        traits = getattr(self._engine, "traits", None) or Traits()
        described = {"protocol": PROTOCOL, "name": self._engine.name, "version": self._engine.version, "traits": traits}
        return {**described, "engine": Subject(self._engine, Engine)}


def main(spec: str) -> None:
    """Load an engine and serve until the suite hangs up. What the engine prints goes to standard error."""
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    complete_torchvision()  # as the suite does in its own process
    Peer(reading, writing, "w", lambda: "the suite has hung up", Root(load(spec))).serve()
    os._exit(0)  # whatever threads the engine has left


if __name__ == "__main__":
    main(*sys.argv[1:])
