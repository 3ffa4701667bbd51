"""Lives of packets: scripts as in `conformance.oracles.transport_lives`."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from conformance.oracles.transport_lives import Life

MOST_LETTERS, MOST_COPIES = 3, 3


@st.composite
def _lives(draw: DrawFn, words: tuple[str, ...]) -> Life:
    """Events that can happen: readers that are there act on packets that were sent."""
    readers = draw(st.integers(1, 3))
    present, packets = set(range(readers)), 0
    events: list[str] = []
    for word in draw(st.lists(st.sampled_from(words), min_size=1, max_size=14)):
        if word == "send":
            letters = draw(st.text("abcdefgh", min_size=1, max_size=MOST_LETTERS))
            copies = draw(st.integers(1, MOST_COPIES))
            events.append(f"send {letters} {copies}")
            packets += copies
        elif word == "recall" and packets:
            events.append(f"recall {draw(st.integers(0, packets - 1))}")
        elif word in ("leave", "join"):
            reader = draw(st.integers(0, readers - 1))
            if (reader in present) == (word == "leave"):
                events.append(f"{word} {reader}")
                present ^= {reader}
        elif packets and present and word != "recall":
            reader, packet = draw(st.sampled_from(sorted(present))), draw(st.integers(0, packets - 1))
            events.append(f"{word} {reader} {packet}")
    return Life(readers, tuple(events))


def packet_lives() -> SearchStrategy[Life]:
    """Up to 14 events with up to three readers. Shrinks to few events, one reader, and packets that came early."""
    return _lives(("send", "send", "receive", "receive", "drop", "skip", "recall", "leave", "join"))
