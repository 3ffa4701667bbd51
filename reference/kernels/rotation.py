"""Multimodal rotary embedding: queries and keys turned by the triple of their position.

A head's first `rotary_dim` numbers are pairs, and each pair is turned by an angle: its frequency times the position of its
token on the axis that rotates this frequency (`reference.positions.rotary_axes`). What lies behind them stays as it is.

1. Cosines and sines come in a table. Two devices do not agree on the bits of a cosine, but on those of a product.
2. Everything is rounded to the dtype of the queries, as the model owner's code does it: the cosine and the sine first, then
   each of both products, then their sum. So there are three roundings and no fused multiplication. For half precision
   this is computed in 32 bits, where the products are exact; the kernel is compiled without contraction.
3. A position outside of the table is refused. A table is indexed from its end by a negative one, and a kernel reads what lies
   elsewhere.

The bits of a NaN are not promised.

Source: transformers 5.24, `apply_rotary_pos_emb` of Qwen2-VL, Qwen3-VL and GLM-4V. SGLang 0.5.23 and vLLM 0.33.0,
`MRotaryEmbedding.forward_native`, round the same way; their kernels may contract, and SGLang's keeps the table in 32 bits on
some GPUs. Disagreements: SGLang turns sections that do not fill `rotary_dim` into others that do.
"""

import torch

from reference.kernels.dispatch import Computed, Path, path_of
from reference.positions import rotary_axes

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def apply_mrope(
    query: torch.Tensor,
    key: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    sections: tuple[int, int, int],
    interleaved: bool,
    neighbours: bool,
) -> Computed[tuple[torch.Tensor, torch.Tensor]]:
    """`query` [n, heads, head_dim] and `key` [n, kv_heads, head_dim], rotated, in new tensors.

    positions: int64 [3, n]: time, height and width.
    table: [positions, rotary_dim]: the cosines of all frequencies, then their sines.
    sections, interleaved: which axis rotates which frequency, as in `reference.positions.rotary_axes`.
    neighbours: whether a pair is two numbers side by side, or one of each half of the first `rotary_dim` numbers.

    Raises TypeError for other dtypes than float32, bfloat16 and float16 and for two of them, ValueError for other shapes, for
    sections that are not half of `rotary_dim`, and for a position outside of the table.
    """
    path = path_of(query=query, key=key, positions=positions, table=table)
    _check(query, key, positions, table)
    half = table.shape[1] // 2
    if sum(sections) != half:
        raise ValueError(f"the sections {sections} rotate {sum(sections)} frequencies, and the table has {half}")
    axes = torch.from_numpy(rotary_axes(sections, interleaved)).to(query.device)
    if path is Path.CPU:
        frequencies = torch.arange(half, device=query.device)
        turns = positions[axes].T
        cosines, sines = (table[turns, frequencies + first].to(query.dtype)[:, None] for first in (0, half))
        return Computed((turn(query, cosines, sines, neighbours), turn(key, cosines, sines, neighbours)), path)
    from reference.kernels.device.rotation import rotate

    return Computed((rotate(query, positions, axes, table, neighbours), rotate(key, positions, axes, table, neighbours)), path)


def turn(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, neighbours: bool) -> torch.Tensor:
    """The heads [n, heads, head_dim], turned by cosines and sines [n, 1, frequencies]; each operation rounds once."""
    half = cosines.shape[2]
    ones = slice(0, 2 * half, 2) if neighbours else slice(0, half)
    others = slice(1, 2 * half, 2) if neighbours else slice(half, 2 * half)
    one, other = heads[..., ones], heads[..., others]
    out = heads.detach().clone(memory_format=torch.contiguous_format)
    out[..., ones] = one * cosines - other * sines
    out[..., others] = other * cosines + one * sines
    return out


def _check(query: torch.Tensor, key: torch.Tensor, positions: torch.Tensor, table: torch.Tensor) -> None:
    if query.dtype not in DTYPES or key.dtype != query.dtype or table.dtype not in DTYPES:
        raise TypeError(f"query is {query.dtype}, key {key.dtype} and table {table.dtype}; heads are of one dtype of {DTYPES}")
    if positions.dtype != torch.int64:
        raise TypeError(f"positions are {positions.dtype}; they have 64 bits")
    if query.ndim != 3 or key.ndim != 3 or len(query) != len(key) or query.shape[2] != key.shape[2]:
        raise ValueError(f"query is {list(query.shape)} and key {list(key.shape)}; both are [positions, heads, head_dim]")
    if positions.shape != (3, len(query)):
        raise ValueError(f"positions have the shape {list(positions.shape)} for {len(query)} tokens: each has three")
    if table.ndim != 2 or table.shape[1] % 2 or table.shape[1] > query.shape[2]:
        raise ValueError(f"the table has the shape {list(table.shape)}: [positions, an even part of {query.shape[2]} numbers]")
    if positions.numel():
        least, most = (int(end) for end in positions.aminmax())
        if least < 0 or most >= len(table):
            raise ValueError(f"positions from {least} to {most} are looked up in a table from 0 to {len(table) - 1}")
