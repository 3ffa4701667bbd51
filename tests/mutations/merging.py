"""Mutations of `merging`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "no row is missing",
        "merging",
        "    if len(rows) != media.sum():",
        "    rows = torch.cat([rows, rows.new_zeros(max(media.sum() - len(rows), 0), rows.shape[1])])\n"
        "    if len(rows) != media.sum():",
        "MERGING-06",
    ),
    Mutation("no row of none is kept", "merging", "rows[len(rows) - count :]", "rows[-count:]", "MERGING-11"),
    Mutation("text has no deepstack rows", "merging", "table.new_zeros(chunk", "table.new_ones(chunk", "MERGING-15"),
]
