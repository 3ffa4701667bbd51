"""What is obviously right about encoders as instances: a diary of each part, read from its beginning for each question.

A script is a list of lines, one operation each. A part is written as its request and its number:

    submit a0 2       a request for the part 0 of a, for 2 receivers
    take              the next part to be encoded
    encoded a0        its rows are made; `broken a0`: the encoder raised
    send a0 1         a transfer to the receiver 1 begins; `sent a0 1`: it ended well; `lost a0 1`: with an error
    cancel a          wait 5          sweep
    jam a0            the next time that the memory of a0 is released, it raises
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from conformance.world.doubles import encoded, image
from reference.items import Item, Modality

STALE_AFTER_S = 10.0
Diary = list[tuple[str, Any, float]]


class Script(NamedTuple):
    """What is done with an encoder."""

    lines: tuple[str, ...]

    def where(self, number: int) -> str:
        return f"line {number} ({self.lines[number]})"


def script(*lines: str) -> Script:
    """The lines, in groups separated by semicolons."""
    return Script(tuple(one.strip() for line in lines for one in line.split(";")))


def message(id: str, part: int, receivers: int = 1) -> dict[str, Any]:
    """A request for a part that has nothing wrong with it."""
    media, options = [f"{id}/{part}.png"], [{"max_pixels": 448 * 448}]
    known = {"part": part, "parts": part + 1, "modality": int(Modality.IMAGE), "receivers": receivers}
    return {"id": id, "media": media, "options": options, **known}


def rows_of(id: str, part: int) -> torch.Tensor:
    """The rows of a part: no two parts have the same, nor as many."""
    return encoded(image(ord(id[0]) * 10 + part, (0, 1 + part + len(id))))


class Store:
    """The memory of an encoder's rows, and what was done with it."""

    def __init__(self) -> None:
        self.registered: Counter[tuple[str, int]] = Counter()
        self.released: Counter[tuple[str, int]] = Counter()
        self.jammed: set[tuple[str, int]] = set()

    def register(self, id: str, part: int) -> None:
        self.registered[id, part] += 1

    def release(self, id: str, part: int) -> None:
        if (id, part) in self.jammed:
            self.jammed.discard((id, part))
            raise OSError(f"the memory of part {part} of {id} is busy")
        self.released[id, part] += 1

    def kept(self) -> set[tuple[str, int]]:
        """The parts whose memory is registered now."""
        return set(self.registered - self.released)


class Player:
    """Does what the lines of a script say."""

    def __init__(self, side: Any, store: Store) -> None:
        self.side, self.store, self.now = side, store, 0.0

    def do(self, line: str) -> Any:
        """What the side answers, in plain values."""
        operation, *words = line.split()
        name = (words[0][0:-1], int(words[0][-1])) if words and words[0][-1:].isdigit() and operation != "wait" else None
        match operation:
            case "submit":
                assert name is not None
                return self.side.submit(message(*name, int(words[1])), self.now)
            case "take":
                return self.side.take()
            case "encoded" | "broken":
                assert name is not None
                made = rows_of(*name) if operation == "encoded" else OSError(f"{words[0]} cannot be encoded")
                return self.side.encoded(*name, made, self.now)
            case "send":
                assert name is not None
                return plain(self.side.send(*name, int(words[1]), self.now))
            case "sent" | "lost":
                assert name is not None
                error = None if operation == "sent" else OSError("the connection was lost")
                return self.side.sent(*name, int(words[1]), error, self.now)
            case "cancel":
                return self.side.cancel(words[0])
            case "sweep":
                return self.side.sweep(self.now)
            case "wait":
                self.now += float(words[0])
            case "jam":
                assert name is not None
                self.store.jammed.add(name)
                getattr(self.side, "jammed", lambda name: None)(name)
        return None


def plain(payload: Any) -> Any:
    """Rows as a list, and any error as the word error."""
    return "error" if isinstance(payload, Exception) else payload.tolist()


class PlainEncoder:
    """The right answers."""

    def __init__(self) -> None:
        self.diaries: dict[tuple[str, int], Diary] = {}
        self.queue: list[tuple[str, int]] = []

    def submit(self, asked: Mapping[str, Any], now: float) -> None:
        self.diaries[asked["id"], asked["part"]] = [("submit", asked["receivers"], now)]
        self.queue.append((asked["id"], asked["part"]))

    def take(self) -> tuple[str, int] | None:
        alive = [name for name in self.queue if not self.has_ended(name)]
        self.queue = alive[1:]
        if alive:
            self.diaries[alive[0]].append(("take", None, 0))
        return alive[0] if alive else None

    def encoded(self, id: str, part: int, made: Any, now: float) -> None:
        self.diaries[id, part].append(("encoded", made, now))

    def send(self, id: str, part: int, receiver: int, now: float) -> Any:
        self.diaries[id, part].append(("send", receiver, now))
        return next(what for event, what, _ in self.diaries[id, part] if event == "encoded")

    def sent(self, id: str, part: int, receiver: int, error: Exception | None, now: float) -> None:
        self.diaries[id, part].append(("sent" if error is None else "lost", receiver, now))

    def cancel(self, id: str) -> None:
        for name, diary in self.diaries.items():
            if name[0] == id:
                diary.append(("cancel", None, 0))

    def jammed(self, name: tuple[str, int]) -> None:
        self.diaries[name].append(("jam", None, 0))

    def sweep(self, now: float) -> None:
        for diary in self.diaries.values():
            diary.append(("sweep", None, 0))
            heard = [when for event, _, when in diary if event in ("encoded", "send", "sent", "lost")]
            if heard and now - max(heard) > STALE_AFTER_S:
                diary.append(("stale", None, 0))

    def in_transfer(self) -> list[tuple[str, int]]:
        """The parts with rows that are being sent."""
        return [name for name, diary in self.diaries.items() if _sending(diary) and isinstance(_made(diary), torch.Tensor)]

    def has_rows(self) -> set[tuple[str, int]]:
        """The parts that have not ended and have rows."""
        made = {name: _made(diary) for name, diary in self.diaries.items() if not self.has_ended(name)}
        return {name for name, one in made.items() if isinstance(one, torch.Tensor)}

    def has_ended(self, name: tuple[str, int]) -> bool:
        """Whether it is over and idle; and if its memory was jammed, whether there was a sweep since."""
        diary = self.diaries[name]
        over = next((n for n in range(1, len(diary) + 1) if _is_over_and_idle(diary[:n])), None)
        if over is None or not any(event == "jam" for event, _, _ in diary[:over]) or _made(diary) is None:
            return over is not None
        return any(event == "sweep" for event, _, _ in diary[over:])

    def held_bytes(self) -> int:
        return sum(rows_of(*name).nbytes for name in self.has_rows())

    def pending(self) -> int:
        return sum(not self.has_ended(name) for name in self.diaries)


def _is_over_and_idle(diary: Diary) -> bool:
    events = [event for event, _, _ in diary]
    reached = {what for event, what, _ in diary if event == "sent"}
    is_over = {"cancel", "lost", "stale"} & set(events) or len(reached) == diary[0][1]
    is_encoding = "take" in events and "encoded" not in events
    return bool(is_over) and not is_encoding and not _sending(diary)


def _sending(diary: Diary) -> bool:
    began = Counter(what for event, what, _ in diary if event == "send")
    return bool(began - Counter(what for event, what, _ in diary if event in ("sent", "lost")))


def _made(diary: Diary) -> Any:
    """What the encoder made of a part that nobody had cancelled before."""
    events = [event for event, _, _ in diary]
    if "encoded" not in events or "cancel" in events[: events.index("encoded")]:
        return None
    return diary[events.index("encoded")][1]


def raw_numbers(items: Sequence[Item]) -> list[int]:
    """The numbers of the items that have to be encoded."""
    return [number for number, item in enumerate(items) if item.embedding is None]
