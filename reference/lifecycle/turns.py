"""Turns: a conversation so far, and one more turn behind it.

Each turn comes as a prompt of its own: its spans, its M-RoPE numbers and its padded ids count from its own beginning.
Joined, it must be what the whole conversation would have been as one prompt. What goes wrong here moves a picture by a
few positions, and the model reads text where the picture was.

1. The history is what was computed: the earlier prompt and the reply to it. The reply is text, whatever its ids are. So
   everything in the new turn moves by the length of both, and not by that of the prompt alone.
2. The history may be cut: only its first positions are kept. What lies behind the cut goes, reply, items and all. An
   item that the cut would divide is an error: half of its positions would be left with rows of the whole.
3. A tokenizer begins every text with its beginning-of-sequence token. Within a conversation there is one, at the very
   beginning. Where the turn's own is dropped, everything else that counts positions moves with it.
4. Nothing is written in place. The history stays as it is, so that a turn can be aborted, and so that two turns can go
   on from one history.
5. A table of numbers may cover less than the history (the reply, a turn without media) and is filled up with text; or
   more of it than is kept, and is cut.

Source: SGLang 0.5.23, `Session.create_req`, `_strip_bos_token`, `SessionController.adjust_mm_offsets`,
`Req._extend_session_image_inputs` and `Scheduler._try_apply_padded_mm_input_ids`; vLLM 0.33,
`Scheduler._update_request_as_session`.
Disagreements: SGLang cuts the ids of a history and keeps all of its items; it moves an item that stands on the
beginning-of-sequence token to a length that it has not. vLLM drops the last sampled token of a reply before it joins the
next turn, and has no other cut.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reference.items import Item, Request, Span
from reference.placeholders import pad_spans
from reference.positions import Triples, extend_positions, stitch_positions


def join_turn(
    history: Request, reply: NDArray[np.int64], turn: Request, keep: int | None = None, bos: int | None = None
) -> Request:
    """The request that continues a conversation: it has the turn's id, and ids and items of the whole.

    history: the request before, joined in the same way; one without positions where there was none.
    reply: int64 [r], what was generated behind it.
    keep: how many positions of history and reply, from the first on, are kept; None: all of them.
    bos: the beginning-of-sequence token, dropped from the beginning of a turn that has something before it.

    Raises ValueError for a `keep` that is negative or more than there is, or that divides an item, and for a turn with
    an item on its beginning-of-sequence token.
    """
    past = np.concatenate([history.input_ids, reply])
    kept = len(past) if keep is None else keep
    if not 0 <= kept <= len(past):
        raise ValueError(f"of a history of {len(past)} positions 0 to {len(past)} can be kept, not {kept}")
    dropped = int(kept > 0 and _begins_with(turn, bos))
    items = [item for item in history.items if _is_kept(item, kept)]
    items += [_moved(item, kept - dropped) for item in turn.items]
    return Request(id=turn.id, input_ids=np.concatenate([past[:kept], turn.input_ids[dropped:]]), items=tuple(items))


def join_positions(previous: Triples, length: int, turn: Triples, is_stripped: bool = False) -> tuple[Triples, int]:
    """The triples int64 [3, length + n] of history and turn, and their delta.

    previous: int64 [3, m], of any number of the first positions of the history; behind them it is text.
    length: of the history that is kept.
    turn: int64 [3, n], numbered by itself from 0 on. is_stripped: whether its first position is dropped, a token of
    text. Raises ValueError where that is no text, and for a negative length.
    """
    if length < 0:
        raise ValueError(f"a history has at least 0 positions, not {length}")
    if is_stripped:
        if turn.shape[1] == 0 or turn[:, 0].any():
            raise ValueError("the first position of a turn can be dropped if it is text, with the number 0 on each axis")
        turn = turn[:, 1:] - 1
    joined = stitch_positions(extend_positions(previous[:, :length], length), turn)
    return joined, int(joined.max(initial=-1)) + 1 - joined.shape[1]


def join_modalities(
    previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool = False
) -> NDArray[np.int8]:
    """The modality of each position of history and turn, 0 at text: int8 [length + n]. Arguments as `join_positions`."""
    if length < 0:
        raise ValueError(f"a history has at least 0 positions, not {length}")
    if is_stripped and (len(turn) == 0 or turn[0]):
        raise ValueError("the first position of a turn can be dropped if it is text")
    known = previous[:length]
    return np.concatenate([known, np.zeros(length - len(known), dtype=np.int8), turn[int(is_stripped) :]])


def join_padded(
    previous: NDArray[np.int64], turn_ids: NDArray[np.int64], items: Sequence[Item], made: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The padded ids int64 [m + n] of a history, padded already, and of a turn behind it.

    previous: int64 [m]. turn_ids: int64 [n], with placeholders. items: of the turn, placed in the whole.
    made: padded ids of the turn that somebody made before. They are taken if there are n of them; if not, they are those
    of another prompt, or of this one before it was cut, and new ones are made.

    Raises ValueError for an item of the turn that begins in the history.
    """
    if made is not None and len(made) == len(turn_ids):
        return np.concatenate([previous, made])
    for item in items:
        if item.spans and item.spans[0].first < len(previous):
            raise ValueError(f"an item of the turn begins at {item.spans[0].first}, in a history of {len(previous)} positions")
    return pad_spans(np.concatenate([previous, turn_ids]), items)


def _begins_with(turn: Request, bos: int | None) -> bool:
    if bos is None or len(turn.input_ids) == 0 or turn.input_ids[0] != bos:
        return False
    if any(span.first == 0 for item in turn.items for span in item.spans):
        raise ValueError(f"an item stands at position 0 of the turn {turn.id}, on its beginning-of-sequence token {bos}")
    return True


def _is_kept(item: Item, kept: int) -> bool:
    if not item.spans or item.spans[-1].last < kept:
        return True
    if item.spans[0].first >= kept:
        return False
    raise ValueError(
        f"a history cannot be cut to {kept} positions, within the {item.modality.name.lower()} that fills "
        f"{item.spans[0].first} to {item.spans[-1].last}: keep {item.spans[0].first} or {item.spans[-1].stop}"
    )


def _moved(item: Item, by: int) -> Item:
    return replace(item, spans=tuple(Span(span.first + by, span.last + by) for span in item.spans))
