"""Group: what the ranks of a server tell one another, and agree on.

What comes to the first rank is broadcast as it came, and what every rank has made of it is gathered by all. A request that
failed on any rank has failed on all, in the words of the lowest one; so has one for which two ranks have other tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from reference.parallel.collectives import Collectives
from reference.serving.shards import GroupLost
from reference.transport.wire import decode_value, encode_value

Outcome = int | Exception | None


class Failed(RuntimeError):
    """A request could not be computed; the same on all ranks."""


def spread(group: Collectives, news: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of the first rank, on every rank. Raises GroupLost."""
    try:
        data = group.broadcast(encode_value(list(news)) if group.rank == 0 else b"", 0)
    except RuntimeError as error:
        raise GroupLost(group.rank, error) from error
    told: list[dict[str, Any]] = decode_value(data)
    return told


def agree(group: Collectives, mine: Mapping[str, Outcome]) -> dict[str, int | Failed | None]:
    """What all ranks have made of these requests, the same on every rank. Raises GroupLost.

    mine: for each request, by its id, a token, None for no token, or what has failed it here.
    """
    said = {id: _words(group.rank, one) if isinstance(one, Exception) else one for id, one in mine.items()}
    try:
        all_said = [decode_value(data) for data in group.all_gather(encode_value(said))]
    except RuntimeError as error:
        raise GroupLost(group.rank, error) from error
    return {id: _agreed([one.get(id, "") for one in all_said]) for id in said}


def _agreed(each: Sequence[int | str | None]) -> int | Failed | None:
    """What was said of one request, by rank."""
    for one in each:
        if isinstance(one, str):
            return Failed(one)
    if any(one != each[0] for one in each):
        return Failed(f"the ranks do not agree: they have the tokens {list(each)}")
    return each[0] if isinstance(each[0], int) else None


def _words(rank: int, error: Exception) -> str:
    return f"rank {rank}: {type(error).__name__}: {error}"
