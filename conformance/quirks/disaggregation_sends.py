"""Ways in which encoders have given memory back too early, too late, twice, or never."""

import torch

from conformance.quirk import quirk
from reference.disaggregation.encoder_side import EncoderSide, Name


@quirk(
    "failed-send-keeps-the-rows",
    replaces="open_encoder_side",
    bugs=("G08",),
    caught_by=("DISAGGREGATION-16", "DISAGGREGATION-17", "DISAGGREGATION-19", "DISAGGREGATION-20", "DISAGGREGATION-22"),
)
class FailedSendKeepsTheRows(EncoderSide):
    """When a transfer fails, the part stays staged, in memory that stays registered."""

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        one = self._part(id, part, "staged")
        if error is not None:
            one.sending.discard(receiver)
            return
        super().sent(id, part, receiver, error, now)


@quirk(
    "failed-send-tears-its-siblings",
    replaces="open_encoder_side",
    bugs=("G08", "G12"),
    caught_by=("DISAGGREGATION-17", "DISAGGREGATION-21"),
)
class FailedSendTearsItsSiblings(EncoderSide):
    """When a transfer fails, the memory is given back at once, while sibling ranks still read from it."""

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        one = self._parts.get((id, part))
        if one is None:
            return
        if error is not None and self._memory is not None:
            if isinstance(one.made, torch.Tensor):
                self._memory.release(id, part)
            del self._parts[id, part]
            return
        super().sent(id, part, receiver, error, now)


@quirk(
    "sweep-stops-at-the-first",
    replaces="open_encoder_side",
    bugs=("G07",),
    caught_by=("DISAGGREGATION-18", "DISAGGREGATION-19", "DISAGGREGATION-20"),
)
class SweepStopsAtTheFirst(EncoderSide):
    """A sweep waits for a stale part that is being read, and comes to no other behind it."""

    def sweep(self, now: float) -> None:
        for name, one in list(self._parts.items()):
            if one.state == "staged" and now - one.touched > self._stale_after_s:
                one.is_over = True
                if one.sending:
                    return
            self._end_if_over(name)


@quirk(
    "sweep-dies-of-an-error",
    replaces="open_encoder_side",
    bugs=("G07",),
    caught_by=("DISAGGREGATION-18", "DISAGGREGATION-19", "DISAGGREGATION-20"),
)
class SweepDiesOfAnError(EncoderSide):
    """The first release that raises ends all sweeping."""

    is_dead = False

    def sweep(self, now: float) -> None:
        for name, one in list(self._parts.items()):
            if self.is_dead:
                return
            if one.state == "staged" and now - one.touched > self._stale_after_s:
                one.is_over = True
            self._end_if_over(name)
            self.is_dead = name in self._parts and one.is_over and not one.sending and one.state != "encoding"


@quirk("sweep-takes-what-is-read", replaces="open_encoder_side", bugs=("G07",), caught_by=("DISAGGREGATION-21",))
class SweepTakesWhatIsRead(EncoderSide):
    """A sweep gives back the memory of a stale part while somebody reads from it."""

    def sweep(self, now: float) -> None:
        for name, one in self._parts.items():
            is_stale = one.state == "staged" and now - one.touched > self._stale_after_s
            if is_stale and one.sending and isinstance(one.made, torch.Tensor) and self._memory is not None:
                self._memory.release(*name)
                one.made = None
        super().sweep(now)


@quirk("sweep-counts-from-the-encoder", replaces="open_encoder_side", bugs=("G07",), caught_by=("DISAGGREGATION-18",))
class SweepCountsFromTheEncoder(EncoderSide):
    """A part is stale some time after it was encoded, whatever was sent of it since."""

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        super().sent(id, part, receiver, error, self._part(id, part, "staged").touched)

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        return super().send(id, part, receiver, self._part(id, part, "staged").touched)


@quirk("registered-for-each-send", replaces="open_encoder_side", bugs=("G12",), caught_by=("DISAGGREGATION-20",))
class RegisteredForEachSend(EncoderSide):
    """Every transfer registers the memory of its part, which sibling ranks have registered already."""

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        made = super().send(id, part, receiver, now)
        if isinstance(made, torch.Tensor) and self._memory is not None and len(self._parts[id, part].sending) > 1:
            self._memory.register(id, part)
        return made


@quirk(
    "given-up-before-it-is-released",
    replaces="open_encoder_side",
    bugs=("G07", "G12"),
    caught_by=(
        "DISAGGREGATION-16",
        "DISAGGREGATION-17",
        "DISAGGREGATION-18",
        "DISAGGREGATION-19",
        "DISAGGREGATION-20",
        "DISAGGREGATION-21",
    ),
)
class NeverReleased(EncoderSide):
    """A part that has failed or was cancelled is forgotten, and its memory stays registered for ever."""

    def _end_if_over(self, name: Name) -> None:
        one = self._parts[name]
        if one.is_over and len(one.reached) < one.receivers and one.state == "staged":
            del self._parts[name]
            return
        super()._end_if_over(name)


@quirk("sent-after-it-was-given-up", replaces="open_encoder_side", bugs=("G08",), caught_by=("DISAGGREGATION-22",))
class SentAfterItWasGivenUp(EncoderSide):
    """A part that was cancelled or has failed is sent to further receivers as long as one transfer runs."""

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        one = self._parts.get((id, part))
        was_over = one is not None and one.is_over
        if one is not None:
            one.is_over = False
        try:
            return super().send(id, part, receiver, now)
        finally:
            if one is not None:
                one.is_over = was_over


@quirk("sent-twice", replaces="open_encoder_side", bugs=(), caught_by=("DISAGGREGATION-22",))
class SentTwice(EncoderSide):
    """A receiver that has the rows is sent them again."""

    def send(self, id: str, part: int, receiver: int, now: float) -> torch.Tensor | Exception:
        one = self._part(id, part, "staged")
        one.sending.discard(receiver)
        one.reached.discard(receiver)
        return super().send(id, part, receiver, now)
