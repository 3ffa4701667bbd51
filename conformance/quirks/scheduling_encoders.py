"""Ways in which engines have counted the encoder part of a model with cross attention wrongly."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from conformance.protocol.scheduling import DecoderPart
from conformance.quirk import quirk
from reference import scheduling as right
from reference.items import Chunk

Batch = Sequence[tuple[NDArray[np.int64], Chunk, int]]


def parts(batch: Batch) -> list[DecoderPart]:
    """What the reference makes of a batch."""
    return [DecoderPart(p.encoder_length, p.is_cached, p.chunk, p.input_ids) for p in right.encoder_lengths(batch)]


@quirk("cached-prefix-keeps-the-encoder-part", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-01",))
def with_the_whole_prefix(batch: Batch) -> list[DecoderPart]:
    """The decoder's prefix is counted with the cached encoder part, so that it attends to positions that it has not."""
    return [
        replace(part, chunk=Chunk(c.prefix, part.chunk.length)) for part, (_, c, _) in zip(parts(batch), batch, strict=True)
    ]


@quirk("cached-only-beyond-the-encoder-part", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-01",))
def beyond_only(batch: Batch) -> list[DecoderPart]:
    """A prefix that is exactly the encoder part is taken for none, and the encoder runs again."""
    made = zip(parts(batch), batch, strict=True)
    return [replace(part, is_cached=part.is_cached and (c.prefix > n or not n)) for part, (_, c, n) in made]


@quirk("one-flag-for-the-batch", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-01",))
def flag_of_the_first(batch: Batch) -> list[DecoderPart]:
    """Whether the encoder part is cached is looked up for the first request and taken for the others too."""
    made = parts(batch)
    return [replace(part, is_cached=made[0].is_cached) for part in made]


@quirk("encoder-ids-reach-the-decoder", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-02",))
def unstripped(batch: Batch) -> list[DecoderPart]:
    """The lengths leave out the encoder part, and the ids do not."""
    return [replace(part, input_ids=ids) for part, (ids, _, _) in zip(parts(batch), batch, strict=True)]


@quirk("cached-ids-are-stripped-again", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-02",))
def stripped_again(batch: Batch) -> list[DecoderPart]:
    """As many ids as the encoder part has are stripped whether it is cached or not."""
    return [replace(part, input_ids=ids[n:]) for part, (ids, _, n) in zip(parts(batch), batch, strict=True)]


@quirk("half-an-encoder-part-is-cached", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-03",))
def any_prefix_will_do(batch: Batch) -> list[DecoderPart]:
    """A prefix that ends inside the encoder part counts as all of it; what is missing of it is never encoded."""
    return parts([(ids, Chunk(max(c.prefix, n if c.prefix else 0), c.length), n) for ids, c, n in batch])


@quirk("encoder-part-in-pieces", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-04",))
def in_pieces(batch: Batch) -> list[DecoderPart]:
    """A chunk that ends inside the encoder part encodes a part of it, and the decoder gets nothing."""
    return parts([(ids, c, n if c.prefix else min(n, c.stop)) for ids, c, n in batch])


@quirk("bare-assertion-on-the-encoder-part", replaces="encoder_lengths", bugs=(), caught_by=("SCHEDULING-03", "SCHEDULING-04"))
def asserts(batch: Batch) -> list[DecoderPart]:
    """An encoder part that is neither whole nor absent ends in an assertion without words."""
    try:
        return parts(batch)
    except ValueError:
        raise AssertionError from None
