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
    Mutation(
        "which weights are loaded is part of the key",
        "encoder_cache",
        "for part in adapter)]\n",
        "for part in adapter[:1])]\n",
        "ENCODER_CACHE-24",
    ),
    Mutation(
        "an adapter of the language model is no part of the key",
        "encoder_cache",
        "if adapter is None or not changes_encoder:",
        "if adapter is None:",
        "ENCODER_CACHE-25",
    ),
]
