"""Ways in which encoders have taken requests in wrong, or dropped what they made."""

from collections.abc import Mapping
from typing import Any

import torch

from conformance.quirk import quirk
from reference.disaggregation.encoder_side import EncoderSide, Name, check_message
from reference.items import Modality


@quirk("malformed-video-reaches-the-ranks", replaces="open_encoder_side", bugs=("G09",), caught_by=("DISAGGREGATION-12",))
class MalformedVideoReachesTheRanks(EncoderSide):
    """The check looks at images and recordings only; a malformed request for a video goes to every rank."""

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        if isinstance(message, Mapping) and message.get("modality") == Modality.VIDEO:
            for rank in self._ranks:
                rank(message)
        super().submit(message, now)


@quirk("checked-after-dispatch", replaces="open_encoder_side", bugs=("G09",), caught_by=("DISAGGREGATION-12",))
class CheckedAfterDispatch(EncoderSide):
    """A request is handed to the ranks and then checked."""

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        for rank in self._ranks:
            rank(message)
        ranks, self._ranks = self._ranks, ()
        super().submit(message, now)
        self._ranks = ranks


@quirk("a-bool-is-a-number", replaces="open_encoder_side", bugs=("G09",), caught_by=("DISAGGREGATION-12",))
class ABoolIsANumber(EncoderSide):
    """True and False are taken for the numbers 1 and 0."""

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        if isinstance(message, Mapping):
            message = {name: int(value) if isinstance(value, bool) else value for name, value in message.items()}
        super().submit(message, now)


@quirk("first-rank-alone", replaces="open_encoder_side", bugs=(), caught_by=("DISAGGREGATION-13",))
class FirstRankAlone(EncoderSide):
    """Only the first rank gets a request; the others wait for it."""

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        self._ranks = self._ranks[:1]
        super().submit(message, now)


@quirk("ranks-without-options", replaces="open_encoder_side", bugs=("G06",), caught_by=("DISAGGREGATION-13",))
class RanksWithoutOptions(EncoderSide):
    """The ranks are told the media, and not how they are to be processed."""

    def submit(self, message: Mapping[str, Any], now: float) -> None:
        check_message(message)
        super().submit({**message, "options": [{} for _ in message["media"]]}, now)


@quirk(
    "last-part-is-encoded-first",
    replaces="open_encoder_side",
    bugs=("G02",),
    caught_by=(
        "DISAGGREGATION-14",
        "DISAGGREGATION-15",
        "DISAGGREGATION-16",
        "DISAGGREGATION-17",
        "DISAGGREGATION-18",
        "DISAGGREGATION-19",
        "DISAGGREGATION-20",
        "DISAGGREGATION-21",
    ),
)
class LastComeFirstServed(EncoderSide):
    """What came last is encoded first, and what came first may wait for ever."""

    def take(self) -> Name | None:
        self._queue.reverse()
        name = super().take()
        self._queue.reverse()
        return name


@quirk(
    "first-send-takes-the-rows",
    replaces="open_encoder_side",
    bugs=("G12",),
    caught_by=("DISAGGREGATION-14", "DISAGGREGATION-17", "DISAGGREGATION-20", "DISAGGREGATION-21"),
)
class FirstSendTakesTheRows(EncoderSide):
    """After the first transfer the rows are given up, though sibling ranks have still to read them."""

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        one = self._part(id, part, "staged")
        others = one.sending - {receiver}
        super().sent(id, part, receiver, error, now)
        if error is None and (id, part) in self._parts and isinstance(one.made, torch.Tensor) and self._memory is not None:
            one.made = one.made[:0]
            if others:
                self._memory.release(id, part)


@quirk("error-to-the-first-receiver", replaces="open_encoder_side", bugs=("G01",), caught_by=("DISAGGREGATION-15",))
class ErrorToTheFirstReceiver(EncoderSide):
    """Only the first receiver hears of an error; the others get a part without rows."""

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        made = super().send(id, part, receiver, now)
        return torch.empty(0, 5) if isinstance(made, Exception) and receiver else made


@quirk(
    "error-is-dropped",
    replaces="open_encoder_side",
    bugs=("G01",),
    caught_by=("DISAGGREGATION-15", "DISAGGREGATION-19", "DISAGGREGATION-20", "DISAGGREGATION-21"),
)
class ErrorIsDropped(EncoderSide):
    """When the encoder raises, the part is forgotten, and its receivers wait without end."""

    def encoded(self, id: str, part: int, made: torch.Tensor | Exception, now: float) -> None:
        super().encoded(id, part, made, now)
        if isinstance(made, Exception) and (id, part) in self._parts:
            del self._parts[id, part]


@quirk(
    "cancel-forgets-the-queue",
    replaces="open_encoder_side",
    bugs=("G04",),
    caught_by=("DISAGGREGATION-16", "DISAGGREGATION-19", "DISAGGREGATION-20", "DISAGGREGATION-21"),
)
class CancelForgetsTheQueue(EncoderSide):
    """A request that is cancelled while it waits is encoded all the same."""

    def cancel(self, id: str) -> None:
        for name, one in list(self._parts.items()):
            if name[0] == id and one.state != "queued":
                one.is_over = True
                self._end_if_over(name)


@quirk(
    "cancelled-result-is-kept",
    replaces="open_encoder_side",
    bugs=("G04",),
    caught_by=("DISAGGREGATION-16", "DISAGGREGATION-19", "DISAGGREGATION-20"),
)
class CancelledResultIsKept(EncoderSide):
    """The rows of a part that was cancelled while it was encoded stay until a sweep."""

    def encoded(self, id: str, part: int, made: torch.Tensor | Exception, now: float) -> None:
        one = self._part(id, part, "encoding")
        one.is_over = False
        super().encoded(id, part, made, now)


@quirk(
    "cancel-tears-a-transfer",
    replaces="open_encoder_side",
    bugs=("G04", "G08"),
    caught_by=("DISAGGREGATION-16", "DISAGGREGATION-21"),
)
class CancelTearsATransfer(EncoderSide):
    """A cancel gives the memory back while others read from it."""

    def cancel(self, id: str) -> None:
        for name, one in list(self._parts.items()):
            if name[0] == id and one.sending and not one.is_over and self._memory is not None:
                if isinstance(one.made, torch.Tensor):
                    self._memory.release(*name)
                del self._parts[name]
        super().cancel(id)

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        if (id, part) in self._parts:
            super().sent(id, part, receiver, error, now)


@quirk(
    "cancel-by-prefix",
    replaces="open_encoder_side",
    bugs=(),
    caught_by=("DISAGGREGATION-16", "DISAGGREGATION-19", "DISAGGREGATION-20", "DISAGGREGATION-21"),
)
class CancelByPrefix(EncoderSide):
    """A cancel ends every request whose name begins with the one that was given."""

    def cancel(self, id: str) -> None:
        for other in {name[0] for name in self._parts if name[0].startswith(id)}:
            super().cancel(other)
