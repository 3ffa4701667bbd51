"""Ways in which engines have fed draft models wrongly."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.quirk import quirk
from reference import speculation as right
from reference.items import Chunk, Item, Modality
from reference.merging import span_mask
from reference.positions import extend_positions

Ids = NDArray[np.int64]
Items = Sequence[Item]


def _media_behind(ids: Ids, items: Items, chunk: Chunk) -> bool:
    """Whether a medium stands behind a chunk that has positions."""
    spans = (span for item in items for span in item.spans)
    return bool(chunk.length and span_mask(spans, Chunk(0, len(ids) + 1))[chunk.stop])


@quirk(
    "draft-not-shifted",
    replaces="draft_embeddings",
    bugs=("spec-shifted-embeds-unshifted-mrope",),
    caught_by=("SPECULATION-01", "SPECULATION-02", "SPECULATION-03", "SPECULATION-04"),
)
def not_shifted(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The draft takes the embedding of the position whose hidden state it takes."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id).roll(1, 0)
    made[:1] = table[0]
    return made


@quirk(
    "rows-not-shifted",
    replaces="draft_embeddings",
    bugs=("spec-shifted-embeds-unshifted-mrope", "D05"),
    caught_by=("SPECULATION-01", "SPECULATION-02"),
)
def rows_not_shifted(
    ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int
) -> torch.Tensor:
    """The ids shift by one, but the rows go where the target has them."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    spans = [span for item in items for span in item.spans]
    here = torch.from_numpy(span_mask(spans, chunk))
    words = table[ids[chunk.prefix : chunk.stop] % len(table)]
    shifted = torch.from_numpy(span_mask(spans, Chunk(chunk.prefix + 1, chunk.length)))
    mixed = torch.where(shifted[:, None], words, made)
    count = min(int(here.sum()), len(rows))
    mixed[here.nonzero()[:count, 0]] = rows[:count].to(table.dtype)
    return mixed


@quirk(
    "sampled-behind-every-chunk",
    replaces="draft_embeddings",
    bugs=(),
    caught_by=("SPECULATION-03", "SPECULATION-04", "SPECULATION-05"),
)
def sampled_behind(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The sampled token is put behind every chunk, also where the prompt goes on (SGLang before pull request 26800)."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    made[-1:] = table[next_id % len(table)]
    return made


@quirk("sampled-before-media", replaces="draft_embeddings", bugs=("P04",), caught_by=("SPECULATION-04", "SPECULATION-05"))
def sampled_before_media(
    ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int
) -> torch.Tensor:
    """Where a medium stands behind the chunk, its id is outside the vocabulary, and the sampled token is taken instead."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    if _media_behind(ids, items, chunk):
        made[-1] = table[next_id]
    return made


@quirk(
    "sentinel-behind-the-chunk-gathered",
    replaces="draft_embeddings",
    bugs=("P04",),
    caught_by=("SPECULATION-01", "SPECULATION-02", "SPECULATION-04", "SPECULATION-05"),
)
def gathered(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """What stands behind the chunk is looked up in the table, a sentinel as well: out of its bounds."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    if _media_behind(ids, items, chunk):
        made[-1] = table[int(ids[chunk.stop])]
    return made


@quirk(
    "sentinel-behind-the-chunk-clamped",
    replaces="draft_embeddings",
    bugs=("P04",),
    caught_by=("SPECULATION-04", "SPECULATION-05"),
)
def clamped(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """What stands behind the chunk is clamped into the vocabulary: a medium becomes the last word of the table."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    if _media_behind(ids, items, chunk):
        made[-1] = table[-1]
    return made


@quirk("draft-embeds-words-only", replaces="draft_embeddings", bugs=("D05",), caught_by=("SPECULATION-02", "SPECULATION-04"))
def words_only(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The rows do not reach the draft's batch: it embeds clamped ids at the positions of media."""
    return right.draft_embeddings(ids, items, table[-1].expand(len(rows), -1), table, chunk, next_id)


@quirk(
    "drafter-borrows-a-method",
    replaces="draft_embeddings",
    bugs=("spec-drafter-borrowed-method",),
    caught_by=("SPECULATION-01", "SPECULATION-02", "SPECULATION-04", "SPECULATION-05"),
)
def borrowed(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The drafter merges with a method of another model, which asks for attributes that the drafter does not have."""
    if len(rows):
        raise AttributeError("the draft model has no attribute '_is_multimodal'")
    return right.draft_embeddings(ids, items, rows, table, chunk, next_id)


@quirk(
    "drafter-knows-pictures-only",
    replaces="draft_embeddings",
    bugs=("spec-token-index-attr",),
    caught_by=("SPECULATION-02", "SPECULATION-04"),
)
def pictures_only(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The drafter reads one image token id from the target's configuration; other media are words to it."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    others = [span for item in items for span in item.spans if item.modality is not Modality.IMAGE]
    made[torch.from_numpy(span_mask(others, Chunk(chunk.prefix + 1, chunk.length)))] = table[12]
    return made


@quirk("last-word-twice", replaces="draft_embeddings", bugs=(), caught_by=("SPECULATION-01",))
def last_twice(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The ids are shifted, and the last place keeps the last word of the prompt instead of the sampled one."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    if chunk.length and chunk.stop == len(ids):
        made[-1] = table[int(ids[-1]) % len(table)]
    return made


@quirk("sampled-id-clamped", replaces="draft_embeddings", bugs=("P04",), caught_by=("SPECULATION-06",))
def sampled_clamped(
    ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int
) -> torch.Tensor:
    """The draft's embedding clamps all ids, so that a wrong one never shows."""
    return right.draft_embeddings(ids, items, rows, table, chunk, max(0, min(next_id, len(table) - 1)))


@quirk("ids-rotated-in-place", replaces="draft_embeddings", bugs=(), caught_by=("SPECULATION-07",))
def rotated(ids: Ids, items: Items, rows: torch.Tensor, table: torch.Tensor, chunk: Chunk, next_id: int) -> torch.Tensor:
    """The ids of the target are shifted where they stand."""
    made = right.draft_embeddings(ids, items, rows, table, chunk, next_id)
    ids[:-1] = ids[1:].copy()
    return made


@quirk(
    "draft-stands-at-the-token",
    replaces="draft_positions",
    bugs=("spec-shifted-embeds-unshifted-mrope",),
    caught_by=("SPECULATION-08", "SPECULATION-09"),
)
def at_the_token(positions: Ids, chunk: Chunk, steps: int) -> Ids:
    """The positions are shifted with the ids, although the draft model was trained at those of the hidden states."""
    longer = extend_positions(positions, positions.shape[1] + steps + 1)
    return longer[:, chunk.prefix + 1 : chunk.stop + steps + 1]


@quirk("draft-at-text-positions", replaces="draft_positions", bugs=("D02",), caught_by=("SPECULATION-08", "SPECULATION-09"))
def as_text(positions: Ids, chunk: Chunk, steps: int) -> Ids:
    """The draft's batch is built without M-RoPE: its positions count tokens."""
    return np.tile(np.arange(chunk.prefix, chunk.stop + steps), (3, 1))


@quirk("draft-goes-on-in-time", replaces="draft_positions", bugs=(), caught_by=("SPECULATION-09",))
def on_in_time(positions: Ids, chunk: Chunk, steps: int) -> Ids:
    """The drafts behind the first pass go on from the time axis of the last position, where a picture is far behind."""
    made = right.draft_positions(positions, chunk, steps)
    if steps:
        made[:, chunk.length :] = positions[0, -1] + 1 + np.arange(steps)
    return made


@quirk(
    "draft-goes-on-in-tokens",
    replaces="draft_positions",
    bugs=("llamacpp-ntokens-vs-npos",),
    caught_by=("SPECULATION-09",),
)
def on_in_tokens(positions: Ids, chunk: Chunk, steps: int) -> Ids:
    """The drafts behind the first pass are numbered by tokens, of which a picture has more than positions."""
    made = right.draft_positions(positions, chunk, steps)
    if steps:
        made[:, chunk.length :] = positions.shape[1] + np.arange(steps)
    return made


@quirk(
    "positions-shared-with-the-target",
    replaces="draft_positions",
    bugs=("spec-shifted-embeds-unshifted-mrope",),
    caught_by=("SPECULATION-10",),
)
def shared(positions: Ids, chunk: Chunk, steps: int) -> Ids:
    """The draft's positions are a view of the target's, and what is written to the one shows in the other."""
    if steps:
        return right.draft_positions(positions, chunk, steps)
    return positions[:, chunk.prefix : chunk.stop]
