"""Scripts for encoders, receivers and rooms: see the oracles of the stage disaggregation."""

from collections.abc import Sequence

from hypothesis import strategies as st

from conformance.oracles import disaggregation as sides
from conformance.oracles import disaggregation_parts as parts
from conformance.oracles import disaggregation_rooms as rooms
from fuzz.strategies.lives import drawings

NAMES = ("a", "aa", "b")
MEDIA = (".", "ii", "jjj", "k", "vv.vv", "w", "aa", "b")


@st.composite
def encoder_scripts(choose: st.DrawFn, most: int = 24) -> sides.Script:
    """Whatever may be done with an encoder, in any order in which it may be; shrinks to one line."""
    plain, lines = sides.PlainEncoder(), list[str]()
    player = sides.Player(plain, sides.Store())
    for _ in range(choose(st.integers(1, most))):
        lines.append(choose(st.sampled_from(_possible(plain))))
        player.do(lines[-1])
    return sides.Script(tuple(lines))


def _possible(plain: sides.PlainEncoder) -> list[str]:
    """The lines that may come next."""
    new = [(name, part) for name in NAMES for part in range(2) if (name, part) not in plain.diaries]
    lines = [f"submit {name}{part} {count}" for name, part in new for count in (1, 3)]
    lines += ["take", "sweep", "wait 6", "wait 11", *(f"cancel {name}" for name in NAMES)]
    for (name, part), diary in plain.diaries.items():
        events = [event for event, _, _ in diary]
        if "take" in events and "encoded" not in events:
            lines += [f"encoded {name}{part}"] * 3 + [f"broken {name}{part}"]
        if "encoded" not in events or plain.has_ended((name, part)):
            continue
        begun = [what for event, what, _ in diary if event == "send"]
        over = [what for event, what, _ in diary if event in ("sent", "lost")]
        if not {"cancel", "lost", "stale"} & set(events):
            lines += [f"send {name}{part} {receiver}" for receiver in range(diary[0][1]) if receiver not in begun]
            lines += [f"jam {name}{part}"] if (name, part) in plain.has_rows() and "jam" not in events else []
        lines += [
            f"{how} {name}{part} {receiver}" for receiver in begun if receiver not in over for how in ("sent", "sent", "lost")
        ]
    return lines


WAYS = ("arrive", "arrive", "arrive", "again", "broken", "short", "long", "wide", "cast", "recount", "bare")


@st.composite
def part_scripts(
    choose: st.DrawFn, ways: Sequence[str] = WAYS, others: Sequence[str] = ("fail", "cancel", "beyond")
) -> parts.Script:
    """Up to three requests, and parts that arrive in any of these ways; shrinks to one request without media."""
    prompts = {name: choose(drawings(MEDIA, 5).map(_distinct)) for name in NAMES[: choose(st.integers(1, 3))]}
    case = parts.script(prompts, "poll", embedded=choose(st.sampled_from(["", "i", "jv", "ik", "ijk"])))
    lines, waiting = list[str](), list(prompts)
    for _ in range(choose(st.integers(0, 20))):
        arrivals = [
            f"{way} {name} {number}"
            for name, request in case.prompts.items()
            for number in sides.raw_numbers(request.items)
            for way in ways
        ]
        rest = [f"expect {name}" for name in waiting] * 4 + [f"{word} {name}" for word in others for name in prompts]
        lines.append(choose(st.sampled_from([*rest, "poll", "poll", "wait 4", *arrivals])))
        lines[-1:] = ["poll", "wait 4"] if lines[-1] == "wait 4" else lines[-1:]
        waiting = [name for name in waiting if lines[-1] != f"expect {name}"]
    return case._replace(lines=(*lines, "poll"))


def _distinct(drawing: str) -> str:
    """The drawing with a letter only where it stands first: a letter is one item, and here it has one run."""
    kept, seen = "", ""
    for character in drawing:
        is_new = character == "." or character not in seen or kept[-1:] == character
        kept += character if is_new else "."
        seen += character
    return kept


NUMBERS = (0, 1, 10, 101, 2**32, 2**32 + 1, 2**63 - 1)
WORDS = ("expect", "begin", "store", "store")
CARRIED = ("post", "post", "back", "poll", "replay")


@st.composite
def room_scripts(choose: st.DrawFn, ending: str = "finish") -> rooms.Script:
    """Up to three rooms on their way to their end; messages are delivered in any order, and more than once.

    ending: of the rooms of a script: "finish", or "abort": by either side, at any time before they are finished; or
    "lose": as "finish", but messages may be lost and time may pass.
    """
    numbers = choose(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3, unique=True))
    prompts = {f"r{n}": choose(drawings(MEDIA, 4).map(_distinct)) or "." for n in range(len(numbers))}
    left = {number: list(WORDS) for number in numbers}
    lines = list[str]()
    for _ in range(choose(st.integers(2, 24))):
        nexts = [f"{word} {number}" for number, words in left.items() for word in dict.fromkeys(words) if _may(words, word)]
        may_wait = lines.count("wait 3") < 3  # not as long as a room may be open
        others = ["lose", *(["wait 3"] if may_wait else [])] if ending == "lose" else []
        word, _, room = choose(st.sampled_from([*CARRIED, *others, *nexts])).partition(" ")
        if word in WORDS:
            left[int(room)].remove(word)
            lines.append(_line(word, int(room), numbers.index(int(room)), choose(st.integers(1, 3))))
        else:
            lines.append(f"{word} {room}".strip())
    for number in choose(st.permutations(numbers)):
        lines += [_line(word, number, numbers.index(number), 1) for word in left[number] if word in ("expect", "begin")]
        lines += [choose(st.sampled_from(["", "post", "back"]))] if ending != "lose" else []
        lines.append(
            choose(st.sampled_from([f"drop {number}", f"leave {number}"])) if ending == "abort" else f"finish {number}"
        )
    end = ("wait 12", "poll") if ending == "lose" else ("post", "poll")
    return rooms.script(
        prompts, *(line for line in lines if line), *end, deltas={name: -len(text) for name, text in prompts.items()}
    )


def _may(words: Sequence[str], word: str) -> bool:
    return word != "store" or "begin" not in words


def _line(operation: str, number: int, request: int, count: int) -> str:
    return f"store {number} {count}" if operation == "store" else f"{operation} {number} r{request}"
