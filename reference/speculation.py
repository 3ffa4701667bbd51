"""Speculation: what a draft model is fed where a prompt has media, and what a drafter without a model may propose.

1. A draft model of the EAGLE or MTP kind takes the hidden state of position p with the embedding of position p + 1. So the
   rows of media shift by one together with the ids: a draft chunk is the chunk that begins one position later.
2. What stands behind a chunk is the next id of the prompt, or the next row of a medium. Only behind the last chunk is it
   the token that was sampled; behind any other one that is sampled from half a prompt, and means nothing. So chunks add up
   to the whole.
3. A sentinel is no word of any model. It is never embedded, also not clamped into the vocabulary, and never proposed.
4. The draft stands at the position of the hidden state, as it did in training. With one number a position the shift
   would make no difference to rotary embeddings; with three it does at each border between text and media.
5. A draft behind the prompt is text: it goes on at the largest number on any axis, plus 1.
6. An n-gram matches text alone. The ids of media are placeholders, alike for different pictures, or sentinels.

Sources: EAGLE's `Model.topK_genrate` (cnets.py), which drops the first id and counts positions from 0; SGLang 0.5.23,
`EagleDraftWorker._draft_extend_for_prefill`, `_eagle_prefill_tail_tokens` and `NGRAMWorker`; vLLM 0.33.0,
`set_inputs_first_pass`, `_gather_mm_embeddings` and `_find_longest_matched_ngram_and_propose_tokens`.
Disagreements: at the end of a chunk that is not the last, SGLang embeds the sampled token where the next position is a
medium; vLLM takes its row, and the placeholder's text embedding where the item is not encoded yet. After the first pass
vLLM goes on from the time axis plus 1. It matches n-grams over placeholder ids, too; of several matches it takes the
earliest, and so does this.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from reference.items import Chunk, Item, all_spans, check_within
from reference.merging import merge, span_mask
from reference.positions import Triples, extend_positions


def draft_embeddings(
    input_ids: NDArray[np.int64],
    items: Sequence[Item],
    rows: torch.Tensor,
    table: torch.Tensor,
    chunk: Chunk,
    next_id: int,
) -> torch.Tensor:
    """What a draft model takes beside the hidden states of a chunk: a new tensor [chunk.length, hidden].

    input_ids: of the whole prompt, int64 [n]. rows: of the media at chunk.prefix + 1 to chunk.stop, by position.
    next_id: the sampled token; it is looked at only where the chunk ends with the prompt.

    Raises ValueError for a chunk that ends behind the prompt, and as `merge` does: for another number or width of rows,
    and for an id outside the vocabulary that is no medium's.
    """
    length = len(input_ids)
    check_within(all_spans(items), length)
    if chunk.stop > length:
        raise ValueError(f"{chunk} ends behind the last of {length} positions")
    ids = input_ids[chunk.prefix + 1 : chunk.stop + 1]
    if chunk.length and chunk.stop == length:
        ids = np.append(ids, np.int64(next_id))
    return merge(ids[: chunk.length], items, rows, table, Chunk(chunk.prefix + 1, chunk.length))


def draft_positions(positions: Triples, chunk: Chunk, steps: int = 0) -> Triples:
    """The positions of a draft model over a chunk, and of `steps` tokens that it proposes: a new int64 [3, length + steps].

    positions: those of the prompt, int64 [3, n], n >= 1; a draft over its position p stands where p stands.

    Raises ValueError for a chunk that ends behind the prompt, and for steps that are negative or not behind its end.
    """
    length = positions.shape[1]
    if chunk.stop > length:
        raise ValueError(f"{chunk} ends behind the last of {length} positions")
    if steps < 0 or (steps and chunk.stop != length):
        raise ValueError(f"{steps} steps behind {chunk}: drafts go on behind the last of {length} positions only")
    return extend_positions(positions, length + steps)[:, chunk.prefix : chunk.stop + steps]


def propose_ngram(
    input_ids: NDArray[np.int64], items: Sequence[Item], shortest: int, longest: int, count: int
) -> tuple[int, ...]:
    """Up to `count` ids that followed the earliest of the longest matches of the last `shortest` to `longest` ids.

    input_ids: of the prompt and the reply so far, int64 [n]. A match has text behind it, and no medium in it.

    Raises ValueError unless 1 <= shortest <= longest and count >= 1.
    """
    if not 1 <= shortest <= longest or count < 1:
        raise ValueError(f"1 <= shortest <= longest and count >= 1, not {shortest}, {longest} and {count}")
    length = len(input_ids)
    spans = all_spans(items)
    check_within(spans, length)
    media = span_mask(spans, Chunk(0, length))
    text_before = length - max([0, *(span.stop for span in spans)])
    begins = np.flatnonzero(~media)
    matched = begins[:0]
    for size in range(1, min(longest, text_before) + 1):
        begins = begins[begins >= size]
        begins = begins[(input_ids[begins - size] == input_ids[-size]) & ~media[begins - size]]
        if size >= shortest and begins.size:
            matched = begins
    if not matched.size:
        return ()
    following = slice(int(matched[0]), int(matched[0]) + count)
    stop = np.flatnonzero(media[following])
    return tuple(input_ids[following][: stop[0] if stop.size else None].tolist())
