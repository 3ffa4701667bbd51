"""Ways in which heads have been turned wrongly."""

import torch

from conformance.quirk import quirk
from reference.kernels import rotation as right
from reference.positions import rotary_axes

Sections = tuple[int, int, int]
Pair = tuple[torch.Tensor, torch.Tensor]
Tensor = torch.Tensor


@quirk(
    "heads-turned-by-sections-in-a-row",
    replaces="apply_mrope",
    bugs=("qwen3-interleaved-vs-blocked",),
    caught_by=("KERNELS-25", "KERNELS-26", "KERNELS-27", "KERNELS-28"),
)
def in_a_row(q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, _: bool, neighbours: bool) -> Pair:
    """Frequencies are shared out in a row where the axes should take turns: text is turned rightly, and pictures are not."""
    return right.apply_mrope(q, k, positions, table, sections, False, neighbours).value


@quirk(
    "heads-turned-by-time-alone",
    replaces="apply_mrope",
    bugs=("D02",),
    caught_by=("KERNELS-25", "KERNELS-26", "KERNELS-27", "KERNELS-28"),
)
def by_time(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """Of three positions the first one is taken, as for text."""
    right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours)
    return right.apply_mrope(q, k, positions[:1].expand(3, -1), table, sections, interleaved, neighbours).value


@quirk(
    "heads-paired-by-halves",
    replaces="apply_mrope",
    bugs=(),
    caught_by=("KERNELS-25", "KERNELS-26", "KERNELS-27"),
)
def by_halves(q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, _: bool) -> Pair:
    """A pair is one number of each half, also where it should be two neighbours."""
    return right.apply_mrope(q, k, positions, table, sections, interleaved, False).value


@quirk("heads-paired-across-the-whole", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-25",))
def across_the_whole(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """The halves are those of the head, and not of the part of it that is turned."""
    made = right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours).value
    half, width = table.shape[1] // 2, q.shape[2]
    if neighbours or width == 2 * half:
        return made
    order = [*range(half), *range(width // 2, width // 2 + half)]
    places = torch.tensor(order + [n for n in range(width) if n not in order], device=q.device)
    moved = right.apply_mrope(q[..., places], k[..., places], positions, table, sections, interleaved, False).value
    back = places.argsort()
    return moved[0][..., back], moved[1][..., back]


@quirk("heads-turned-back", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-25", "KERNELS-26", "KERNELS-27"))
def turned_back(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """The sign of the sine is lost: heads are turned the other way, which is the same for all distances but their sign."""
    half = table.shape[1] // 2
    other = torch.cat([table[:, :half], -table[:, half:]], dim=1)
    return right.apply_mrope(q, k, positions, other, sections, interleaved, neighbours).value


@quirk("keys-of-the-first-heads", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-25",))
def first_heads(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """As many heads of the queries are turned as there are heads of the keys."""
    queries, keys = right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours).value
    return torch.cat([queries[:, : k.shape[1]], q[:, k.shape[1] :]], dim=1), keys


@quirk("heads-turned-by-a-narrow-table", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-26", "KERNELS-27"))
def narrow_table(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """The table is kept in bfloat16, whatever the heads are."""
    narrow = table.to(torch.bfloat16).to(table.dtype)
    return right.apply_mrope(q, k, positions, narrow, sections, interleaved, neighbours).value


@quirk("heads-turned-in-one-operation", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-27",))
def fused(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """Products and sum are rounded together, once: nearer to the exact number, and other bits than the model owner's."""
    right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours)
    axes = torch.from_numpy(rotary_axes(sections, interleaved)).to(q.device)
    angles = table.to(q.dtype).to(torch.float64)
    half = torch.arange(len(axes), device=q.device)
    cosines, sines = (angles[positions[axes].T, half + first][:, None] for first in (0, len(axes)))
    turned = [right.turn(one.to(torch.float64), cosines, sines, neighbours).to(one.dtype) for one in (q, k)]
    return turned[0], turned[1]


@quirk(
    "positions-read-in-a-row",
    replaces="apply_mrope",
    bugs=("llamacpp-batch-view-mrope", "mlx-mrope-chunk-offset-delta"),
    caught_by=("KERNELS-28",),
)
def in_one_row(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """Positions of a chunk are read one behind the other from where its first one lies, and not from the rows of its prompt."""
    right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours)
    flat = torch.empty(0, dtype=positions.dtype, device=positions.device).set_(positions.untyped_storage())
    read = flat[positions.storage_offset() :][: positions.numel()]
    triples = torch.cat([read, read.new_zeros(positions.numel() - len(read))]).reshape(positions.shape)
    return right.apply_mrope(q, k, triples % len(table), table, sections, interleaved, neighbours).value


@quirk("heads-by-dense-strides", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-28",))
def dense_strides(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """Heads are read as if those of one token were followed by those of the next, also where others lie between them."""
    flat = torch.empty(0, dtype=q.dtype, device=q.device).set_(q.untyped_storage())[q.storage_offset() :]
    read = flat.repeat(2)[: q.numel()].reshape(q.shape)
    return right.apply_mrope(read, k, positions, table, sections, interleaved, neighbours).value


@quirk("positions-wrapped-around", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-30",))
def wrapped(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """A position outside of the table is looked up somewhere else in it, as a negative index is from its end."""
    return right.apply_mrope(q, k, positions % len(table), table, sections, interleaved, neighbours).value


@quirk("heads-of-at-least-one-position", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-42",))
def at_least_one(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """How many heads there are is worked out from the size of the batch, and a batch of none stops the step."""
    queries, keys = right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours).value
    return queries.view(len(q), -1, q.shape[2]), keys.view(len(k), -1, k.shape[2])


@quirk("sections-made-to-fit", replaces="apply_mrope", bugs=(), caught_by=("KERNELS-29",))
def made_to_fit(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """Sections that do not fill the head are changed until they do."""
    fitting = (sections[0], sections[1], table.shape[1] // 2 - sections[0] - sections[1])
    return right.apply_mrope(q, k, positions, table, fitting, interleaved, neighbours).value


@quirk("axes-on-the-default-device", replaces="apply_mrope", bugs=("H20",), caught_by=("KERNELS-31",))
def elsewhere(
    q: Tensor, k: Tensor, positions: Tensor, table: Tensor, sections: Sections, interleaved: bool, neighbours: bool
) -> Pair:
    """What the kernel writes to is made on the default device, and not where the heads lie."""
    queries, keys = right.apply_mrope(q, k, positions, table, sections, interleaved, neighbours).value
    return torch.empty(queries.shape, dtype=queries.dtype).copy_(queries), keys
