"""Mutations of `kernels`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "words are mixed with their place in the tensor",
        "kernels/hashing",
        "places = (start // 4 + np.arange(tiles.size))",
        "places = (np.arange(tiles.size) % TILE_WORDS)",
        "KERNELS-02",
    ),
    Mutation(
        "the last word is filled up",
        "kernels/hashing",
        "padded_bytes = (len(data) + 3) // 4 * 4",
        "padded_bytes = len(data) // 4 * 4",
        "KERNELS-03",
    ),
    Mutation(
        "what fills up a tile is not mixed in",
        "kernels/hashing",
        " ^ _rotate(places, 15)) * there",
        " ^ _rotate(places, 15))",
        "KERNELS-01",
    ),
    Mutation(
        "bytes are those of the elements in their order",
        "kernels/dispatch",
        "_resolved(tensor).contiguous()",
        "_resolved(tensor)",
        "KERNELS-04",
    ),
    Mutation(
        "ids are compared in 64 bits",
        "kernels/masks",
        "_is_one_of(input_ids.to(torch.int64), sentinels)",
        "_is_one_of(input_ids, sentinels.to(input_ids.dtype))",
        "KERNELS-11",
    ),
    Mutation(
        "an id behind the last sentinel is none",
        "kernels/masks",
        "    return ascending[places] == ids\n",
        "    return ascending[places] <= ids\n",
        "KERNELS-10",
    ),
    Mutation(
        "a mask is made where the ids lie",
        "kernels/masks",
        "return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)",
        "return torch.zeros(len(ids), dtype=torch.bool)",
        "KERNELS-24",
    ),
    Mutation(
        "spans are counted from the chunk",
        "kernels/masks",
        "np.clip(edges - chunk.prefix, 0, chunk.length)",
        "np.clip(edges, 0, chunk.length)",
        "KERNELS-21",
    ),
    Mutation(
        "rows are counted before they are scattered",
        "kernels/rows",
        "    if len(rows) != wanted:\n",
        "    if len(rows) < wanted:\n",
        "KERNELS-14",
    ),
    Mutation(
        "scattering makes a new tensor",
        "kernels/rows",
        ".index_copy(0, mask",
        ".index_copy_(0, mask",
        "KERNELS-15",
    ),
    Mutation(
        "ids are clamped into the table",
        "kernels/rows",
        "clamp(0, max(len(table) - 1, 0))",
        "clamp(0, len(table))",
        "KERNELS-18",
    ),
    Mutation(
        "rows are counted before they are merged",
        "kernels/rows",
        "    if len(rows) != found.total:\n",
        "    if False:\n",
        "KERNELS-19",
    ),
    Mutation(
        "levels have zeros at text",
        "kernels/rows",
        "    out[0, ~media] = table",
        "    out[:, ~media] = table",
        "KERNELS-17",
    ),
    Mutation(
        "what a merge needs is made where its ids lie",
        "kernels/rows",
        "media = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)",
        "media = torch.zeros(len(ids), dtype=torch.bool)",
        "KERNELS-22",
    ),
]
