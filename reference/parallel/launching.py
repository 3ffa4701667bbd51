"""Launch plan: which process runs where, and which ranks it has.

A model that is too large for one device is split by layers (pipeline ranks, pp) and within each layer (tensor ranks, tp);
the whole may be there several times (data parallel replicas, dp). Two more numbers divide the tensor ranks anew, and add no
process: attention may be computed by groups of tensor ranks, each for requests of its own (attention dp), and experts
are shared among expert ranks (ep).

1. Processes are counted with the tensor rank fastest, then the pipeline rank, then the replica: who speaks most with one
   another is neighbours. Nodes take them in this order, equally many each, and devices in order, too.
2. A tensor group lies on whole nodes, or several groups on one node. Where one would begin in the middle of a node and
   end on the next, that node's links would carry what the layout promised to keep inside.
3. Of consecutive tensor ranks, tp / attention_dp are one group for attention, and tp / ep hold the same experts.
4. The number of processes is that of the layout, or there is no plan: one that leaves ranks out starts, and then waits for
   them for ever. So every division must come out even, and every refusal names the number that is wrong.

Source: SGLang 0.5.23, `_calculate_rank_ranges`, `DataParallelController.launch_tensor_parallel_group` and
`compute_dp_attention_world_info`; vLLM 0.33, `initialize_model_parallel`, whose layout is dp x pp x tp, too.
Disagreements: in vLLM groups for attention are replicas, and the experts are shared by all dp x tp ranks of a
stage or by none. SGLang multiplies the tensor rank with the step from device to device, and not the pipeline rank.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How many processes there are, and what they are for.

    tp, pp, dp: tensor ranks, pipeline ranks, replicas. attention_dp: groups of tensor ranks for attention. ep: expert
    ranks among the tensor ranks. nodes: machines. devices: those that a node has, of which the processes take every
    `device_step`-th from `first_device` on.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    attention_dp: int = 1
    ep: int = 1
    nodes: int = 1
    devices: int = 8
    first_device: int = 0
    device_step: int = 1


class Place(NamedTuple):
    """One process: where it runs, and its ranks. dp: replica * attention_dp + the group for attention."""

    node: int
    device: int
    dp: int
    pp: int
    tp: int
    ep: int


def launch_plan(layout: Layout) -> list[Place]:
    """All processes, by node and device. Raises ValueError, naming what cannot be, for a layout without a plan."""
    _check(layout)
    per_node = layout.tp * layout.pp * layout.dp // layout.nodes
    return [_place(layout, number, per_node) for number in range(layout.tp * layout.pp * layout.dp)]


def _place(layout: Layout, number: int, per_node: int) -> Place:
    """The `number`-th process."""
    replica, rest = divmod(number, layout.pp * layout.tp)
    pp, tp = divmod(rest, layout.tp)
    node, local = divmod(number, per_node)
    group = tp // (layout.tp // layout.attention_dp)
    return Place(
        node=node,
        device=layout.first_device + local * layout.device_step,
        dp=replica * layout.attention_dp + group,
        pp=pp,
        tp=tp,
        ep=tp // (layout.tp // layout.ep),
    )


def _check(layout: Layout) -> None:
    for knob in fields(layout):
        least, value = 0 if knob.name == "first_device" else 1, getattr(layout, knob.name)
        if type(value) is not int or value < least:
            raise ValueError(f"{knob.name} is a whole number of at least {least}, not {value!r}")
    for name in ("attention_dp", "ep"):
        if layout.tp % getattr(layout, name):
            raise ValueError(f"{name} = {getattr(layout, name)} does not divide tp = {layout.tp}")
    total = layout.tp * layout.pp * layout.dp
    if total % layout.nodes:
        raise ValueError(f"nodes = {layout.nodes} does not divide the {total} processes of tp * pp * dp")
    per_node = total // layout.nodes
    if per_node % layout.tp and layout.tp % per_node:
        raise ValueError(f"tp = {layout.tp} would be cut by nodes with {per_node} processes each, in the middle of a group")
    last = layout.first_device + (per_node - 1) * layout.device_step
    if last >= layout.devices:
        raise ValueError(
            f"devices = {layout.devices}, but {per_node} processes on a node need device {last}, "
            f"with first_device = {layout.first_device} and device_step = {layout.device_step}"
        )
