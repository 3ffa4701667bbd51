"""What is no value stays where it is, and the other side gets a reference to it.

Who was sent a reference says when it has no more use for it, and how often it was sent: so an object that is sent once
more meanwhile is not lost.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import WeakValueDictionary, finalize

from conformance.remote.links import lend
from conformance.remote.plain import NotPlain

Call = Callable[[int, str | None, tuple[Any, ...], dict[str, Any]], Any]
Get = Callable[[int, str], Any]


class There:
    """An object of the other side.

    methods: the names that can be called without looking first; None: look. times: how often it has come.
    """

    def __init__(self, number: int, methods: list[str] | None, call: Call, get: Get) -> None:
        self._number, self._methods, self._call, self._get, self._times = number, methods, call, get, [0]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(self._number, None, arguments, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._methods is None:
            return self._get(self._number, name)
        if name not in self._methods:
            raise AttributeError(f"the object in the other process has no method {name!r}")
        return lambda *arguments, **named: self._call(self._number, name, arguments, named)


class References:
    """The objects of this side that the other one knows by number, and those of the other one that are known here.

    root: is known as number 0 from the beginning. gone: what is to be said about references that are of no use any more,
    as lines of `peer`.
    """

    def __init__(self, root: Any, call: Call, get: Get) -> None:
        self._own: dict[int, Any] = {0: root}
        self._numbers: dict[int, int] = {}  # by the id of an object, which _own keeps alive
        self._times: dict[int, int] = {}
        self._theirs: WeakValueDictionary[int, There] = WeakValueDictionary()
        self._next = count(1)
        self._lock = threading.RLock()
        self._call, self._get = call, get
        self.gone: deque[list[Any]] = deque()

    def own(self, number: int) -> Any:
        """An object of this side. Raises NotPlain for a number that is none, or that the other side has dropped."""
        try:
            return self._own[number]
        except KeyError:
            raise NotPlain(f"there is no object {number}") from None

    def refer(self, value: Any) -> dict[str, Any]:
        """How an object is written."""
        if isinstance(value, There) and value._call == self._call:
            return {"$": "yours", "object": value._number}
        if isinstance(value, socket.socket):
            return {"$": "socket", "port": lend(value)}
        methods = getattr(value, "methods_there", None)
        return {"$": "mine", "object": self._export(value), "type": type(value).__name__, "methods": methods}

    def resolve(self, plain: dict[str, Any]) -> Any:
        """The object that `refer` of the other side has written."""
        if plain["$"] == "yours":
            return self.own(plain["object"])
        if plain["$"] != "mine":
            raise NotPlain(f"there are no values of kind {plain['$']!r}")
        number = plain["object"]
        with self._lock:
            there = self._theirs.get(number)
            if there is None:
                kind = type(str(plain.get("type", "There")), (There,), {})  # messages name the type of what came
                there = self._theirs[number] = kind(number, plain.get("methods"), self._call, self._get)
                finalize(there, _drop, self.gone, number, there._times)
            there._times[0] += 1
            return there

    def forget(self, number: int, times: int) -> None:
        """The other side has no more use for a reference that it was sent so many times."""
        with self._lock:
            left = self._times.get(number, 0) - times
            self._times[number] = left
            if left <= 0 and number in self._times and number in self._own:
                del self._times[number]
                del self._numbers[id(self._own.pop(number))]

    def _export(self, value: Any) -> int:
        with self._lock:
            number = self._numbers.get(id(value))
            if number is None:
                number = next(self._next)
                self._own[number], self._numbers[id(value)] = value, number
            self._times[number] = self._times.get(number, 0) + 1
            return number


def _drop(gone: deque[list[Any]], number: int, times: list[int]) -> None:
    gone.append(["drop", number, times[0]])
