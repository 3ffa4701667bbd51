"""Mutations of `encoder_cache`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "a hit has as many rows as the item has tokens",
        "encoder_cache",
        "entry.embedding.shape[0] != token_count",
        "entry.embedding.shape[0] < 0",
        "ENCODER_CACHE-02",
    ),
    Mutation(
        "a get makes an entry young", "encoder_cache", "            self._entries.move_to_end(key)\n", "", "ENCODER_CACHE-04"
    ),
    Mutation("a view is copied", "encoder_cache", "_Entry(_alone(embedding)", "_Entry(embedding", "ENCODER_CACHE-10"),
    Mutation(
        "work from before a clear is not kept", "encoder_cache", "generation == self._generation and ", "", "ENCODER_CACHE-13"
    ),
]
