"""Mutations of `merging`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("no row is merged too few or too many", "merging", "if len(rows) != media.sum():", "if False:", "MERGING-06"),
    Mutation("no row of none is kept", "merging", "rows[len(rows) - count :]", "rows[-count:]", "MERGING-11"),
    Mutation("text has no deepstack rows", "merging", "table.new_zeros(chunk", "table.new_ones(chunk", "MERGING-15"),
]
