"""Encoder ranks: media of one step, each encoded by one rank, and the rows of all of them on every rank.

An encoder is small beside the language model. Where tensor ranks share its layers they wait for one another more than they
compute, so each rank holds the whole encoder and takes some of the items.

1. The largest item goes to the rank with the least to do, then the next one: nobody then has more than 4/3 - 1/(3 ranks)
   times what the best of all assignments would give him (Graham 1969). Equal items keep their order and equal ranks are
   taken from the first on, so that every rank finds the same assignment by itself.
2. Ranks differ in how much they have, and some have nothing. They tell one another first how many rows each item has and
   what failed; then all gather tensors of the size of the largest share. Both calls are entered by every rank, and none
   stands inside the encoder: a rank without an item would never come there.
3. What an item's encoder raises concerns that item, on all ranks.
4. Rows go back to the order of the items, and padding goes.

Source: vLLM 0.33, `get_load_balance_assignment` and `run_dp_sharded_mrope_vision_model`; SGLang 0.5.23, `mm_utils`.
Disagreements: both know the number of rows from the grid, and need no first call; neither catches what an encoder raises.
"""

import heapq
import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from reference.items import Item
from reference.parallel.collectives import DTYPES, Collectives

Encode: TypeAlias = Callable[[Item], torch.Tensor]
Told: TypeAlias = list[int | str] | str


class ItemFailed(ValueError):
    """An item could not be encoded by the rank to which it fell; the same on all ranks."""


def assign_items(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """For each rank the numbers of the items that it encodes, the largest first.

    Raises ValueError unless there is a rank, and for a size below 0.
    """
    if ranks < 1:
        raise ValueError(f"items are encoded by at least 1 rank, not by {ranks}")
    if min(sizes, default=0) < 0:
        raise ValueError(f"an item has a size of at least 0, not {min(sizes)}")
    shares: list[list[int]] = [[] for _ in range(ranks)]
    loads = [(0, rank) for rank in range(ranks)]
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        load, rank = loads[0]
        shares[rank].append(number)
        heapq.heapreplace(loads, (load + sizes[number], rank))
    return shares


def encode_on_rank(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """The rows of all items in order, each encoded by one rank, or what failed it. Entered by every rank."""
    shares = assign_items([item.token_count for item in items], collectives.size)
    made = {number: _encoded(items[number], encode) for number in shares[collectives.rank]}
    told: dict[int, Told] = {}
    for share, words in zip(shares, collectives.all_gather(json.dumps([*map(_told, made.values())]).encode()), strict=True):
        told |= zip(share, json.loads(words), strict=True)
    results: list[torch.Tensor | Exception] = [ItemFailed(f"item {number}: {told[number]}") for number in range(len(items))]
    sound = [one for _, one in sorted(told.items()) if not isinstance(one, str)]
    if not sound:
        return results
    _, *form = sound[0]
    whole = [[number for number in share if told[number][1:] == form] for share in shares]
    room = torch.zeros(max(sum(int(told[n][0]) for n in share) for share in whole), int(form[0]), dtype=DTYPES[str(form[1])])
    mine = [rows for n, rows in made.items() if n in whole[collectives.rank] and isinstance(rows, torch.Tensor)]
    room[: sum(map(len, mine))] = torch.cat([room[:0], *mine])
    for share, rows in zip(whole, collectives.all_gather_tensor(room), strict=True):
        first = 0
        for number in share:
            results[number] = rows[first : first + int(told[number][0])]
            first += int(told[number][0])
    return results


def _encoded(item: Item, encode: Encode) -> torch.Tensor | str:
    """The rows of an item, or what is wrong, in words."""
    try:
        rows = encode(item)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if rows.ndim != 2 or len(rows) != item.token_count:
        return f"{item.token_count} positions, but its rows are {list(rows.shape)}"
    return rows


def _told(rows: torch.Tensor | str) -> Told:
    """What the others must know of an item: how many rows, how wide, of which dtype; or what is wrong."""
    return rows if isinstance(rows, str) else [len(rows), rows.shape[1], str(rows.dtype).removeprefix("torch.")]
