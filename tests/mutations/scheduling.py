"""Mutations of `scheduling`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "what the prefix has of the encoder part is not the decoder's",
        "scheduling",
        "Chunk(chunk.prefix - encoder_length, chunk.length)",
        "Chunk(chunk.prefix, chunk.length)",
        "SCHEDULING-01",
    ),
    Mutation(
        "an item is kept to its last position",
        "scheduling",
        "prompt.ended.before(start) + room",
        "prompt.begun.before(start) + room",
        "SCHEDULING-08",
    ),
    Mutation(
        "an item that the prefix cuts is encoded",
        "scheduling",
        "np.maximum(spans.firsts[left], prefix)",
        "spans.firsts[left]",
        "SCHEDULING-07",
    ),
    Mutation("only one request is half done", "scheduling", " or (stop < prompt.length and half_done)", "", "SCHEDULING-15"),
    Mutation(
        "the requests of a step share its budget",
        "scheduling",
        "            room = _less(room, prompt, start, stop)\n",
        "",
        "SCHEDULING-16",
    ),
]
