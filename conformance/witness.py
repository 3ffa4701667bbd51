"""A witness stands between a rule and an engine: it asks, checks the form of the answer, and remembers it.

An exception that leaves an engine is the engine's; any other exception in a rule is the suite's own fault. The witness
keeps the two apart, so that no fault of the suite is ever held against an engine. It also limits the time that an engine
takes, and keeps what the engine was shown as it was.
"""

from dataclasses import dataclass
from typing import Any

from conformance.engine import METHODS, Engine, Traits, families
from conformance.returns import Opens, Reader, WrongAnswer
from conformance.shown import Shown
from conformance.time_limit import LIMIT_S, TookTooLong, time_limit


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and what the engine said: a value in its canonical form, or the error that it raised."""

    method: str
    value: Any
    error: BaseException | None = None


class EngineRaised(AssertionError):
    """An engine raised where the protocol promises an answer."""

    def __init__(self, method: str, error: BaseException) -> None:
        self.error = error
        self.summary = " ".join(f"{type(error).__name__}: {_words(error)}".split())[:300]
        super().__init__(f"{method} raised {self.summary}")


class EngineMisanswered(AssertionError):
    """An engine returned something that is no answer."""

    def __init__(self, method: str, answer: Any, wanted: str) -> None:
        super().__init__(f"{method} returned {type(answer).__name__}; the protocol asks for {wanted}")


class Witness:
    """An engine, or an object that it opened, seen through its protocol.

    spec: how the engine was named (`--engine`), so that a fresh process can load it again; None for an object.
    limit_s: how many seconds it may take to answer one question.
    answers: everything that it has said so far, to this witness and to those of the objects that it opened.
    """

    def __init__(self, subject: Any, *, spec: str | None = None, limit_s: float = LIMIT_S) -> None:
        self.spec = spec
        self.answers: list[Answer] = []
        self._limit_s = limit_s
        self._subject = subject
        self._protocol: type = Engine
        self._shown = Shown()

    def _of_object(self, subject: Any, protocol: type) -> "Witness":
        witness = Witness(subject, limit_s=self._limit_s)
        witness._protocol, witness.answers, witness._shown = protocol, self.answers, self._shown
        return witness

    def put_back(self) -> None:
        """Make everything that the engine was shown again what it was: to be called when a case is over."""
        self._shown.put_back()

    @property
    def subject(self) -> Any:
        """The engine or object itself; what it is asked directly is neither checked nor kept."""
        return self._subject

    @property
    def name(self) -> str:
        return str(self._subject.name)

    @property
    def version(self) -> str:
        return str(self._subject.version)

    @property
    def traits(self) -> Traits:
        return getattr(self._subject, "traits", None) or Traits()

    def can(self, method: str) -> bool:
        """Whether the engine has a method, or one form of it, for whoever prepares its input with the engine's own means."""
        name, _, family = method.partition(".")
        return callable(getattr(self._subject, name, None)) and (not family or family in families(name, self.traits))

    def __repr__(self) -> str:
        return f"an object of the protocol {self._protocol.__name__}"

    def __getattr__(self, method: str) -> Any:
        reader = getattr(getattr(self._protocol, method, None), "reader", None)
        if reader is None:
            raise AttributeError(f"{self._protocol.__name__} has no method {method!r}")

        def ask(*arguments: Any) -> Any:
            plain = [a._subject if isinstance(a, Witness) else a for a in arguments]
            self._shown.keep(plain)
            with time_limit(self._limit_s):
                return self._read(method, reader, self._hear(method, plain))

        return ask

    def _hear(self, method: str, arguments: list[Any]) -> Any:
        """What the engine returns. Raises EngineRaised."""
        try:
            return getattr(self._subject, method)(*arguments)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # somebody wants to stop, and not the engine
        except BaseException as error:  # SystemExit and the like end the case, not the run
            self.answers.append(Answer(method, None, error))
            raise EngineRaised(method, error) from error

    def _read(self, method: str, reader: Reader, answer: Any) -> Any:
        """The answer in its canonical form, or a witness of the object that was opened. Raises EngineMisanswered."""
        try:
            value = reader(answer)
        except WrongAnswer as wanted:
            self.answers.append(Answer(method, None, wanted))
            raise EngineMisanswered(method, answer, str(wanted)) from wanted
        except (Exception, TookTooLong) as error:  # a lazy answer that raises, or a value that only looks like one
            self.answers.append(Answer(method, None, error))
            readable = f"one that can be read, and reading it raised {type(error).__name__}: {_words(error)}"
            raise EngineMisanswered(method, answer, readable) from error
        if isinstance(reader, Opens):
            return self._of_object(value, reader.protocol)
        self.answers.append(Answer(method, value))
        return value


def capabilities(engine: Any) -> tuple[str, ...]:
    """The protocol methods that an engine has, found by looking, in the order of the protocol.

    The methods of what an `open_…` method returns are looked for on a specimen and listed as `open_….method`. A method
    that has one form for each family of models is listed with each that the engine has, as `count_….family`.
    """
    traits = getattr(engine, "traits", None) or Traits()
    found = []
    for method in METHODS:
        if not _has(engine, method):
            continue
        found.append(method)
        reader = getattr(Engine, method).reader
        if isinstance(reader, Opens):
            found += [f"{method}.{name}" for name in _opened(engine, method, reader)]
        found += [f"{method}.{family}" for family in families(method, traits)]
    return tuple(found)


def _opened(engine: Any, method: str, reader: Opens) -> list[str]:
    try:
        with time_limit(LIMIT_S):
            specimen = getattr(engine, method)(*reader.specimen)
    except (Exception, SystemExit, TookTooLong):
        return []  # its requirements will say so
    declared = [name for name, member in vars(reader.protocol).items() if hasattr(member, "reader")]
    return [name for name in declared if callable(getattr(specimen, name, None))]


def _has(engine: Any, method: str) -> bool:
    try:
        return callable(getattr(engine, method, None))
    except Exception:
        return True  # it is there, and its requirements will say what is wrong with it


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "an error whose text cannot be had"
