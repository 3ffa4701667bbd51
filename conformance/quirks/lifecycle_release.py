"""Ways in which engines have given back what requests held too late, too early or never."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference.items import Chunk, Format, Request
from reference.lifecycle.requests import LiveRequests, Medium, Owner, content_bytes

Triples = NDArray[np.int64] | None


@quirk("session-freed-with-its-turn", replaces="open_lifecycle", bugs=("N04",), caught_by=("LIFECYCLE-25", "LIFECYCLE-31"))
class SessionFreedWithItsTurn(LiveRequests):
    """A turn that finishes gives back its content, and the next turn of its session finds none."""

    def finish(self, id: str) -> None:
        self._life(id).session = None
        super().finish(id)


@quirk("aborted-turn-frees-its-session", replaces="open_lifecycle", bugs=("N04",), caught_by=("LIFECYCLE-25",))
class AbortedTurnFreesItsSession(LiveRequests):
    """A turn that is aborted gives back the content of the turns before it, too."""

    def abort(self, id: str) -> None:
        session = self._alive[id].session if id in self._alive else None
        super().abort(id)
        if session is not None:
            self.close(session)

    def finish(self, id: str) -> None:
        life = self._life(id)
        session, life.session = life.session, None
        if session is not None:
            self._own(("session", session), life.media)
        super().finish(id)


@quirk("close-takes-a-running-turn", replaces="open_lifecycle", bugs=("N04",), caught_by=("LIFECYCLE-25",))
class CloseTakesARunningTurn(LiveRequests):
    """A close gives back what the running turn of its session still needs."""

    def close(self, session: str) -> None:
        for life in self._alive.values():
            if life.session == session:
                self._content |= {medium: torch.zeros_like(self._content[medium]) for medium in life.media}
        super().close(session)


@quirk("closed-session-comes-back", replaces="open_lifecycle", bugs=("N04", "L05"), caught_by=("LIFECYCLE-29", "LIFECYCLE-30"))
class ClosedSessionComesBack(LiveRequests):
    """A turn that finishes after its session was closed leaves its content to that session, for ever."""

    def close(self, session: str) -> None:
        self._own(("session", session), ())


@quirk("close-does-nothing", replaces="open_lifecycle", bugs=("L05",), caught_by=("LIFECYCLE-29", "LIFECYCLE-30"))
class CloseDoesNothing(LiveRequests):
    """A session that is closed keeps its content."""

    def close(self, session: str) -> None:
        """Nothing is given back."""


@quirk("only-features-are-freed", replaces="open_lifecycle", bugs=("L04",), caught_by=("LIFECYCLE-29", "LIFECYCLE-30"))
class OnlyFeaturesAreFreed(LiveRequests):
    """What ends gives back its features, and its precomputed embeddings stay."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.left = 0

    def _own(self, owner: Owner, media: Iterable[Medium]) -> None:
        before = dict(self._content)
        super()._own(owner, media)
        gone = set(before) - set(self._content)
        self.left += sum(content_bytes(before[medium]) for medium in gone if medium.format is Format.PRECOMPUTED)

    def held_bytes(self) -> int:
        return super().held_bytes() + self.left


@quirk("aborted-requests-are-held", replaces="open_lifecycle", bugs=("L05", "L12"), caught_by=("LIFECYCLE-29", "LIFECYCLE-30"))
class AbortedRequestsAreHeld(LiveRequests):
    """A request that is aborted leaves its content behind; one that finishes does not."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.finishing = False

    def finish(self, id: str) -> None:
        self.finishing = True
        super().finish(id)
        self.finishing = False

    def abort(self, id: str) -> None:
        if id in self._alive and not self.finishing:
            self._own(("aborted", id), self._alive[id].media)
        super().abort(id)


@quirk("freed-when-idle", replaces="open_lifecycle", bugs=("L05",), caught_by=("LIFECYCLE-30",))
class FreedWhenIdle(LiveRequests):
    """Content is given back when no request is alive and no session open, which never happens under load."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.late: dict[Medium, int] = {}

    def _own(self, owner: Owner, media: Iterable[Medium]) -> None:
        before = dict(self._content)
        super()._own(owner, media)
        for medium in set(before) - set(self._content):
            self.late[medium] = self.late.get(medium, 0) + content_bytes(before[medium])
        if not self._owned:
            self.late.clear()

    def held_bytes(self) -> int:
        return super().held_bytes() + sum(self.late.values())


@quirk("a-copy-for-each-request", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-31",))
class ACopyForEach(LiveRequests):
    """Every request and every session has a copy of its own of what many share."""

    def held_bytes(self) -> int:
        return sum(content_bytes(self._content[medium]) for owned in self._owned.values() for medium in owned)


@quirk("session-keeps-every-turn", replaces="open_lifecycle", bugs=("N05",), caught_by=("LIFECYCLE-31",))
class SessionKeepsEveryTurn(LiveRequests):
    """A session keeps the content of all its turns, whatever of it the last one has left out."""

    def finish(self, id: str) -> None:
        life = self._life(id)
        if life.session is not None:
            life.media += self._owned.get(("session", life.session), ())
        super().finish(id)


@quirk("who-fails-gives-nothing-back", replaces="open_lifecycle", bugs=("L12",), caught_by=("LIFECYCLE-32",))
class WhoFailsGivesNothingBack(LiveRequests):
    """A request that ends with an error is forgotten, and its content is not."""

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor | Exception]:
        media = {id: self._alive[id].media for id in chunks if id in self._alive}
        contents = dict(self._content)
        answers = super().step(chunks)
        for id, answer in answers.items():
            if isinstance(answer, Exception):
                self._content |= {medium: contents[medium] for medium in media[id]}
                self._own(("failed", id), media[id])
        return answers


@quirk("features-stay-on-the-device", replaces="open_lifecycle", bugs=("L05",), caught_by=("LIFECYCLE-33",))
class FeaturesStay(LiveRequests):
    """Features stay on the device after the encoder has read them, until nothing is alive."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._device.release = lambda: None  # type: ignore[method-assign]


@quirk(
    "freed-before-it-is-there",
    replaces="open_lifecycle",
    bugs=("enc-cache-encdec-free-same-step",),
    caught_by=("LIFECYCLE-33",),
)
class FreedBeforeItIsThere(LiveRequests):
    """Rows that no one keeps are freed by the step that makes them, which frees first and encodes then: they stay."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.made = self.left = 0

    def _on_device(self, *arguments: Any) -> Any:
        rows = super()._on_device(*arguments)
        self.made += sum(one.nbytes for one in rows)
        return rows

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor | Exception]:
        before, self.made = self._cache.used_bytes(), 0
        answers = super().step(chunks)
        self.left += max(0, self.made - (self._cache.used_bytes() - before))
        return answers

    def device_bytes(self) -> int:
        return super().device_bytes() + self.left


@quirk("retraction-empties-the-cache", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-34",))
class RetractionEmptiesTheCache(LiveRequests):
    """A retraction throws away the rows in the cache, too, and everything is encoded again."""

    def retract(self, id: str) -> None:
        super().retract(id)
        self._cache.clear()


@quirk("encoded-for-each-chunk", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-34",))
class EncodedForEachChunk(LiveRequests):
    """An item is encoded in each step that computes one of its positions."""

    def step(self, chunks: Mapping[str, Chunk]) -> dict[str, torch.Tensor | Exception]:
        self._cache.clear()
        return super().step(chunks)


@quirk("the-second-one-wins", replaces="open_lifecycle", bugs=(), caught_by=("LIFECYCLE-36",))
class TheSecondOneWins(LiveRequests):
    """A request with the id of one that is alive takes its place."""

    def admit(self, request: Request, session: str | None = None, triples: Triples = None) -> None:
        self.abort(request.id)
        super().admit(request, session, triples)


@quirk("refused-but-held", replaces="open_lifecycle", bugs=("L12",), caught_by=("LIFECYCLE-36", "LIFECYCLE-37"))
class RefusedButHeld(LiveRequests):
    """The content of a request is kept before it turns out that the request is refused."""

    def admit(self, request: Request, session: str | None = None, triples: Triples = None) -> None:
        try:
            super().admit(request, session, triples)
        except ValueError:
            for item in request.items:
                held = item.feature if item.embedding is None else item.embedding
                self._content[Medium(item.modality, item.format, bytes(32), None)] = held
            raise
