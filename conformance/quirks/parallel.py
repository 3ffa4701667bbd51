"""Ways in which ranks have been launched, and media been shared among encoder ranks, wrongly."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, product

import torch

from conformance.protocol.parallel import Collectives, Encode, Layout
from conformance.quirk import quirk
from reference.items import Item
from reference.parallel.encoder_ranks import ItemFailed, assign_items, encode_on_rank
from reference.parallel.launching import Layout as Checked
from reference.parallel.launching import Place, launch_plan


def planned(layout: Layout) -> list[Place]:
    """The plan of the reference."""
    return launch_plan(Checked(**{name: getattr(layout, name) for name in Layout.__slots__}))


@quirk("step-of-tensor-ranks-alone", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-02", "PARALLEL-03"))
def step_of_tensor_ranks_alone(layout: Layout) -> list[Place]:
    """The step from device to device counts for tensor ranks and not for stages: two stages share devices."""
    planned(layout)
    local = planned(replace(layout, device_step=1, first_device=0))
    stride = min(layout.tp, layout.tp * layout.pp // layout.nodes or 1)
    return [
        place._replace(
            device=layout.first_device + place.device // stride * stride + place.device % stride * layout.device_step
        )
        for place in local
    ]


@quirk("stages-left-out", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-10",))
def stages_left_out(layout: Layout) -> list[Place]:
    """Stages are dealt out to nodes by whole numbers, and those that are left over are never launched, or launched twice."""
    try:
        return planned(layout)
    except ValueError as error:
        if "in the middle" not in str(error):
            raise
    stages, nodes = max(layout.pp // layout.nodes, 1), max(layout.nodes // layout.pp, 1)
    per_node = layout.tp // nodes
    return [
        Place(node, s * per_node + t, 0, stages * (node // nodes) + s, per_node * (node % nodes) + t, 0)
        for node, s, t in product(range(layout.nodes), range(stages), range(per_node))
    ]


@quirk(
    "last-replica-missing",
    replaces="launch_plan",
    bugs=(),
    caught_by=("PARALLEL-01", "PARALLEL-03", "PARALLEL-05", "PARALLEL-07"),
)
def last_replica_missing(layout: Layout) -> list[Place]:
    """Of several replicas the last one is not launched."""
    last = layout.dp * layout.attention_dp - layout.attention_dp
    return [place for place in planned(layout) if layout.dp == 1 or place.dp < last]


@quirk(
    "replicas-share-devices",
    replaces="launch_plan",
    bugs=(),
    caught_by=("PARALLEL-02", "PARALLEL-03", "PARALLEL-05"),
)
def replicas_share_devices(layout: Layout) -> list[Place]:
    """Every replica begins at the first device."""
    size = layout.tp * layout.pp
    return [
        place._replace(device=(place.device - layout.first_device) % (size * layout.device_step) + layout.first_device)
        for place in planned(layout)
    ]


@quirk("stages-next-to-one-another", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-04", "PARALLEL-05"))
def stages_next_to_one_another(layout: Layout) -> list[Place]:
    """Devices are taken by the pipeline rank first, so that tensor groups lie across nodes."""
    places = planned(layout)
    order = sorted(places, key=lambda place: (place.dp // layout.attention_dp, place.tp, place.pp))
    return [one._replace(node=place.node, device=place.device) for one, place in zip(order, places, strict=True)]


@quirk(
    "attention-groups-interleaved",
    replaces="launch_plan",
    bugs=("Y03",),
    caught_by=("PARALLEL-01", "PARALLEL-05", "PARALLEL-06"),
)
def attention_groups_interleaved(layout: Layout) -> list[Place]:
    """Every so many-th tensor rank is in one group for attention, and not those in a row."""
    groups = layout.attention_dp
    return [place._replace(dp=place.dp // groups * groups + place.tp % groups) for place in planned(layout)]


@quirk("experts-interleaved", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-07",))
def experts_interleaved(layout: Layout) -> list[Place]:
    """Every so many-th tensor rank holds the same experts, and not those in a row."""
    return [place._replace(ep=place.tp % layout.ep) for place in planned(layout)]


@quirk("layout-unchecked", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-08", "PARALLEL-09", "PARALLEL-50"))
def layout_unchecked(layout: Layout) -> list[Place]:
    """What does not come out even is rounded down, and what there is not is used."""
    try:
        return planned(layout)
    except ValueError:
        total = max(layout.tp, 0) * max(layout.pp, 0) * max(layout.dp, 0)
        if layout.pp > 1:
            raise
        return [Place(0, layout.first_device + n * layout.device_step, 0, 0, n, 0) for n in range(total)]


@quirk("refusal-without-reason", replaces="launch_plan", bugs=(), caught_by=("PARALLEL-09",))
def refusal_without_reason(layout: Layout) -> list[Place]:
    """A layout that cannot be launched is refused, and nobody is told why."""
    try:
        return planned(layout)
    except ValueError:
        raise ValueError("unsupported") from None


@quirk("items-in-turn", replaces="assign_items", bugs=(), caught_by=("PARALLEL-22", "PARALLEL-51"))
def items_in_turn(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """Items go to the ranks in turn, whatever their sizes."""
    return [list(range(rank, len(sizes), ranks)) for rank in range(ranks)]


@quirk("remainder-of-items-lost", replaces="assign_items", bugs=(), caught_by=("PARALLEL-21", "PARALLEL-22", "PARALLEL-51"))
def remainder_of_items_lost(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """Every rank gets equally many items, and those that are left over go to nobody."""
    each = len(sizes) // ranks
    return [list(range(rank * each, (rank + 1) * each)) for rank in range(ranks)]


class DrawnAnew:
    """Assignments that depend on how many were made before: a rank that was asked once more has another one."""

    calls = count()

    def __call__(self, sizes: Sequence[int], ranks: int) -> list[list[int]]:
        shares = assign_items(sizes, ranks)
        turn = next(self.calls) % ranks
        return shares[turn:] + shares[:turn]


@quirk("assignment-drawn-anew", replaces="assign_items", bugs=(), caught_by=("PARALLEL-21",))
def assignment_drawn_anew(sizes: Sequence[int], ranks: int, draw: DrawnAnew = DrawnAnew()) -> list[list[int]]:  # noqa: B008
    """The first rank changes from call to call, so that ranks that count for themselves do not agree."""
    return draw(sizes, ranks)


@quirk(
    "collective-inside-the-encoder",
    replaces="encode_on_rank",
    bugs=("Y04",),
    caught_by=("PARALLEL-23", "PARALLEL-24", "PARALLEL-25", "PARALLEL-26"),
)
def collective_inside_the_encoder(
    items: Sequence[Item], encode: Encode, collectives: Collectives
) -> list[torch.Tensor | Exception]:
    """A layer of the encoder is still shared by all ranks, and a rank without an item never gets there."""

    def meeting(item: Item) -> torch.Tensor:
        collectives.barrier()
        return encode(item)

    return encode_on_rank(items, meeting, collectives)


@quirk("idle-rank-stays-away", replaces="encode_on_rank", bugs=("Y04",), caught_by=("PARALLEL-24", "PARALLEL-26"))
def idle_rank_stays_away(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """A rank without an item has nothing to give, and does not come to where the others gather."""
    if not assign_items([item.token_count for item in items], collectives.size)[collectives.rank]:
        return []
    return encode_on_rank(items, encode, collectives)


@quirk(
    "rows-in-the-order-of-ranks", replaces="encode_on_rank", bugs=(), caught_by=("PARALLEL-23", "PARALLEL-24", "PARALLEL-26")
)
def rows_in_the_order_of_ranks(
    items: Sequence[Item], encode: Encode, collectives: Collectives
) -> list[torch.Tensor | Exception]:
    """Rows stay in the order in which the ranks have made them."""
    shares = assign_items([item.token_count for item in items], collectives.size)
    rows = encode_on_rank(items, encode, collectives)
    return [rows[number] for share in shares for number in share]


@quirk("gathered-without-padding", replaces="encode_on_rank", bugs=(), caught_by=("PARALLEL-23", "PARALLEL-24", "PARALLEL-26"))
def gathered_without_padding(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """Every rank brings as many rows as it has to where all must bring equally many."""
    shares = assign_items([item.token_count for item in items], collectives.size)
    results = encode_on_rank(items, encode, collectives)
    mine = [results[n] for n in shares[collectives.rank] if not isinstance(results[n], Exception)]
    collectives.all_gather_tensor(torch.cat([torch.zeros(0, 5), *mine]))  # type: ignore[list-item]
    return results


@quirk("everybody-encodes-everything", replaces="encode_on_rank", bugs=(), caught_by=("PARALLEL-25",))
def everybody_encodes_everything(
    items: Sequence[Item], encode: Encode, collectives: Collectives
) -> list[torch.Tensor | Exception]:
    """Every rank encodes all items, as if it were alone."""
    results: list[torch.Tensor | Exception] = []
    for number, item in enumerate(items):
        try:
            results.append(encode(item))
        except Exception:
            results.append(ItemFailed(f"item {number}"))
    return results


@quirk("encoder-fails-on-its-rank", replaces="encode_on_rank", bugs=("X02", "G01"), caught_by=("PARALLEL-26",))
def encoder_fails_on_its_rank(
    items: Sequence[Item], encode: Encode, collectives: Collectives
) -> list[torch.Tensor | Exception]:
    """What an encoder raises ends its rank, and the others wait for the rows of that one."""
    results: list[torch.Tensor | Exception] = [*items]  # type: ignore[list-item]
    for number in assign_items([item.token_count for item in items], collectives.size)[collectives.rank]:
        results[number] = encode(items[number])
    return encode_on_rank(items, lambda item: torch.Tensor(results[items.index(item)]), collectives)


@quirk("encoder-failure-in-own-words", replaces="encode_on_rank", bugs=("X02",), caught_by=("PARALLEL-26",))
def encoder_failure_in_own_words(
    items: Sequence[Item], encode: Encode, collectives: Collectives
) -> list[torch.Tensor | Exception]:
    """The rank where an encoder has failed says what it was, and the others that something was."""
    results = encode_on_rank(items, encode, collectives)
    mine = assign_items([item.token_count for item in items], collectives.size)[collectives.rank]
    return [
        ItemFailed("another rank has failed") if isinstance(one, Exception) and number not in mine else one
        for number, one in enumerate(results)
    ]


@quirk("one-item-fails-all", replaces="encode_on_rank", bugs=("L01",), caught_by=("PARALLEL-26",))
def one_item_fails_all(items: Sequence[Item], encode: Encode, collectives: Collectives) -> list[torch.Tensor | Exception]:
    """An item that cannot be encoded fails all items that came with it."""
    results = encode_on_rank(items, encode, collectives)
    failed = [str(one) for one in results if isinstance(one, Exception)]
    return [ItemFailed(json.dumps(failed)) for _ in results] if failed else results
