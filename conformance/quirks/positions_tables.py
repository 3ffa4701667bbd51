"""Ways in which engines have extended, stitched and cut the positions of a prompt wrongly."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import positions as right
from reference.items import Chunk

Table = NDArray[np.int64]


def with_text(table: Table, length: int, start: int) -> Table:
    """The table, extended to a length by text that begins at a number."""
    count = max(length - table.shape[1], 0)
    return np.concatenate([table, np.tile(np.arange(start, start + count), (3, 1))], axis=1)


@quirk(
    "extended-from-the-time-axis",
    replaces="extend_positions",
    bugs=("R02",),
    caught_by=(
        "POSITIONS-16",
        "POSITIONS-18",
    ),
)
def behind_the_last_time(triples: Table, length: int) -> Table:
    """A reply goes on behind the time of the last position, where a picture may have larger rows and columns."""
    return with_text(triples, length, int(triples[0, -1]) + 1 if triples.size else 0)


@quirk(
    "extended-by-token-count",
    replaces="extend_positions",
    bugs=("llamacpp-ntokens-vs-npos",),
    caught_by=("POSITIONS-16", "POSITIONS-18"),
)
def behind_the_tokens(triples: Table, length: int) -> Table:
    """A reply is numbered by its tokens, as if each position of a picture used a number of its own."""
    return with_text(triples, length, triples.shape[1])


@quirk("reply-not-numbered", replaces="extend_positions", bugs=("R01",), caught_by=("POSITIONS-16", "POSITIONS-18"))
def prompt_alone(triples: Table, length: int) -> Table:
    """Only the prompt has positions, and the reply that is computed again with it has none."""
    return triples


@quirk("retracted-positions-grow", replaces="retracted_positions", bugs=("R01",), caught_by=("POSITIONS-28",))
def behind_the_last_attempt(triples: Table, replies: Sequence[int]) -> list[Table]:
    """Each attempt extends what the one before it left by the whole reply."""
    tables: list[Table] = []
    for reply in replies:
        tables.append(right.extend_positions(triples, triples.shape[1] + reply))
        triples = tables[-1]
    return tables


class GrowsOnEveryAttempt:
    """The last reply, by its length."""

    reply = 0


@quirk("extended-on-every-attempt", replaces="extend_positions", bugs=("R01",), caught_by=("POSITIONS-17",))
def once_more(triples: Table, length: int) -> Table:
    """Every attempt to schedule a request again adds its reply once more."""
    GrowsOnEveryAttempt.reply = length - triples.shape[1] or GrowsOnEveryAttempt.reply
    return right.extend_positions(triples, triples.shape[1] + GrowsOnEveryAttempt.reply)


@quirk("turn-starts-at-zero", replaces="stitch_positions", bugs=(), caught_by=("POSITIONS-19", "POSITIONS-20"))
def unshifted(previous: Table, turn: Table) -> Table:
    """A further turn is joined as it was numbered, from 0."""
    return np.concatenate([previous, turn], axis=1)


@quirk(
    "turn-shifted-by-token-count",
    replaces="stitch_positions",
    bugs=("llamacpp-ntokens-vs-npos",),
    caught_by=("POSITIONS-19", "POSITIONS-20"),
)
def shifted_by_tokens(previous: Table, turn: Table) -> Table:
    """A further turn is shifted by the number of tokens before it."""
    return np.concatenate([previous, turn + previous.shape[1]], axis=1)


@quirk("axes-shifted-apart", replaces="stitch_positions", bugs=(), caught_by=("POSITIONS-19",))
def each_axis_by_itself(previous: Table, turn: Table) -> Table:
    """Each axis of a further turn goes on behind its own largest number, so that the axes of text fall apart."""
    return np.concatenate([previous, turn + previous.max(axis=1, keepdims=True, initial=-1) + 1], axis=1)


@quirk("chunk-without-its-end", replaces="chunk_positions", bugs=("R08",), caught_by=("POSITIONS-21", "POSITIONS-22"))
def to_the_end(triples: Table, chunk: Chunk) -> Table:
    """A chunk gets all positions from its first one to the end of the prompt."""
    return triples[:, chunk.prefix :]


@quirk(
    "chunk-starts-anew",
    replaces="chunk_positions",
    bugs=("R08", "mlx-mrope-chunk-offset-delta"),
    caught_by=("POSITIONS-21", "POSITIONS-22"),
)
def from_the_start(triples: Table, chunk: Chunk) -> Table:
    """Each chunk gets the first positions of the prompt."""
    return triples[:, : chunk.length]


@quirk(
    "chunk-mixes-the-axes",
    replaces="chunk_positions",
    bugs=("llamacpp-batch-view-mrope",),
    caught_by=("POSITIONS-21", "POSITIONS-22"),
)
def flat_view(triples: Table, chunk: Chunk) -> Table:
    """A chunk is a contiguous view of memory in which the axes lie one behind the other, so that it mixes them."""
    flat = np.concatenate([triples.flatten(), np.zeros(3 * chunk.length, dtype=np.int64)])
    return flat[chunk.prefix : chunk.prefix + 3 * chunk.length].reshape(3, chunk.length)


@quirk("one-position-as-in-a-reply", replaces="chunk_positions", bugs=(), caught_by=("POSITIONS-22",))
def decoded(triples: Table, chunk: Chunk) -> Table:
    """A chunk of one position is taken for a step of the reply, which has one number on all axes."""
    columns = right.chunk_positions(triples, chunk)
    return np.tile(columns[:1], (3, 1)) if chunk.length == 1 else columns
