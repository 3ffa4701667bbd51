"""The life of a request: turns of a session, offloading, abort, retraction and release."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from conformance import returns as answer
from conformance.protocol.positions import triples, triples_and_delta
from conformance.returns import Opens, WrongAnswer, returns
from reference.items import Chunk, Item, Modality, Request

Encoder = Callable[[Sequence[Item]], torch.Tensor | Sequence[torch.Tensor]]
"""Items of one modality -> their rows: a tensor [token_count, hidden] an item, or all of them in one."""


def request(value: Any) -> Request:
    """A `Request`, or ids and items."""
    ids, items = (value.input_ids, value.items) if isinstance(value, Request) else _pair(value)
    try:
        return Request(id="joined", input_ids=answer.int64_array(ids), items=tuple(items))
    except (TypeError, ValueError) as error:
        raise WrongAnswer(f"a Request, or ids and items with disjoint spans inside them; {error}") from error


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise WrongAnswer("a Request, or a pair of ids and items")
    return value[0], value[1]


def int8_array(value: Any) -> NDArray[np.int8]:
    """A one-dimensional array of integers, or a sequence of these, each the number of a modality or 0."""
    numbers = answer.integers(value.tolist() if isinstance(value, np.ndarray | torch.Tensor) else value)
    if not set(numbers) <= {0, *Modality}:
        raise WrongAnswer("for each position the number of a modality, or 0")
    return np.array(numbers, dtype=np.int8)


def rows_or_error_by_id(value: Any) -> dict[str, torch.Tensor | Exception]:
    """For each request, by its id, a tensor [positions, hidden] or the exception that failed it."""
    if not isinstance(value, Mapping):
        raise WrongAnswer("for each request, by its id, a tensor [positions, hidden] or an exception")
    return {id: one if isinstance(one, Exception) else answer.rows(one) for id, one in value.items()}


class LiveRequests(Protocol):
    """What `open_lifecycle` returns: requests from their admission to their end, computed together in steps.

    A request is alive from `admit` to `finish` or `abort`, or until a step fails it. Its id is free again afterwards.
    """

    @returns(answer.nothing)
    def admit(self, request: Request, session: str | None, triples: NDArray[np.int64] | None) -> None:
        """Take a request in. Its ids have placeholders at media; its items have a feature or an embedding, and an identity.

        session: the session of which it is a turn, or None. It begins with its first turn and ends with `close`, and has
        one turn at a time. A turn holds the whole conversation, or what is left of it. The items that its session's last
        finished turn had, too, come without feature and embedding: the session has kept them.
        triples: the M-RoPE positions int64 [3, n] of the prompt, or None.

        Raises ValueError for the id of a request that is alive, and keeps nothing of what it refuses. An engine that makes
        an id of its own for each request says so in the trait `caller_chooses`, and is not given one twice. It may refuse
        an embedding that has not one row for each position of its item, or fail that request in its first step.
        """

    @returns(rows_or_error_by_id)
    def step(self, chunks: Mapping[str, Chunk]) -> Mapping[str, torch.Tensor | Exception]:
        """Compute a chunk of each of these requests: for each, what enters the language model, [chunk.length, hidden].

        The row of a text position is that of its id in the table, the row of an item's position the one that the encoder
        gives. Prompt and reply count as one sequence. The first chunk after `admit` or `retract` begins behind a prefix
        that some cache has kept, which may be empty; each further one begins where the last one ended.

        A request that cannot be computed has an exception in its place, and has ended; the others are computed. So may one
        with an identity that is known with another token count, see the trait `length_conflicts`. Raises ValueError, and
        computes nothing, for a request that is not alive, a chunk that begins elsewhere, and one that ends behind the last
        token. Where the engine plans its steps, and no caller can ask for one (`caller_chooses`), such chunks are not given.
        """

    @returns(answer.nothing)
    def reply(self, id: str, token_ids: Sequence[int]) -> None:
        """Add generated tokens behind a request that is alive. They are text, and may be computed by further steps."""

    @returns(answer.nothing)
    def retract(self, id: str) -> None:
        """Take back all that was computed of a request that is alive, for want of memory. Its tokens stay."""

    @returns(triples)
    def positions(self, id: str) -> NDArray[np.int64]:
        """The M-RoPE positions int64 [3, n] of prompt and reply of a request that is alive and was admitted with some."""

    @returns(answer.nothing)
    def finish(self, id: str) -> None:
        """End a request that is alive. If it is a turn of a session, that keeps what a further turn needs of it."""

    @returns(answer.nothing)
    def abort(self, id: str) -> None:
        """End a request. Nothing happens to one that has ended, or never was. A session is then as before this turn."""

    @returns(answer.nothing)
    def close(self, session: str) -> None:
        """Forget a session; nothing happens to one that is closed already, or never was.

        A turn that is still running goes on to its end, and what it needs goes with it.
        """

    @returns(answer.integer)
    def held_bytes(self) -> int:
        """The bytes of features and precomputed embeddings that are kept for requests and sessions, on the host or on the
        device. Rows in a cache of the encoder's output do not count."""

    @returns(answer.integer)
    def device_bytes(self) -> int:
        """The bytes of features, and of rows that the encoder made, on the device."""


class Lifecycle(Protocol):
    """The life of a request: turns of a session, offloading, abort, retraction and release."""

    @returns(request)
    def join_turn(
        self, history: Request, reply: NDArray[np.int64], turn: Request, keep: int | None, bos: int | None
    ) -> Request:
        """The next request of a conversation; or a pair, its ids and its items. It has those of the whole.

        history: the request before, which may have been joined in the same way; without any positions for a first turn.
        reply: int64 [r], what was generated behind it, and computed. turn: what comes next, as a prompt of its own. All
        ids have placeholders at media.
        keep: how many positions of history and reply, from the first on, are kept, or None for all. Items that lie behind
        them go; a number that divides an item is refused, or the cut is made where the item begins. One that is negative, or
        more than there are, should be refused.
        bos: the beginning-of-sequence token, or None. It is dropped where a turn begins with it and something is kept
        before the turn. A turn with an item on it should be refused.

        Items of the history come first, then those of the turn, both in their order, with nothing changed but the spans.
        """

    @returns(triples_and_delta)
    def join_positions(
        self, previous: NDArray[np.int64], length: int, turn: NDArray[np.int64], is_stripped: bool
    ) -> tuple[NDArray[np.int64], int]:
        """The M-RoPE positions int64 [3, length + n] of history and turn, and their delta: the largest + 1 - (length + n).

        previous: int64 [3, m], those of the first m positions of the history; whatever lies behind is text.
        length: the positions of the history that are kept: more than m, or fewer, and then a cut that divides no item.
        turn: int64 [3, n], the positions of the turn as a prompt of its own. is_stripped: whether its first position, a
        beginning-of-sequence token, is dropped; the result is then one position shorter.
        """

    @returns(int8_array)
    def join_modalities(
        self, previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool
    ) -> NDArray[np.int8]:
        """The number of the modality of each position of history and turn, 0 at text. Arguments as of `join_positions`."""

    @returns(answer.int64_array)
    def join_padded(
        self, previous: NDArray[np.int64], turn_ids: NDArray[np.int64], items: Sequence[Item], made: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """The ids int64 [m + n] of history and turn in which media are padded with sentinels.

        previous: int64 [m], the history, padded. turn_ids: int64 [n], the turn with placeholders. items: those of the
        turn, with spans in the whole.
        made: padded ids of the turn that were made earlier, or None. They are those of this turn if there are n of them.
        """

    @returns(Opens(LiveRequests, specimen=({}, torch.zeros(1, 1), 0)))
    def open_lifecycle(self, encoders: Mapping[Modality, Encoder], table: torch.Tensor, cache_bytes: int) -> LiveRequests:
        """No requests yet, and an empty cache for at most `cache_bytes` of the rows that encoders make.

        encoders: one for each modality; each may be called at any time in a step. table: the text embeddings
        [vocabulary, hidden].
        """
