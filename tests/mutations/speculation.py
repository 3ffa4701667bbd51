"""Mutations of `speculation`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "the rows of a draft shift with its ids",
        "speculation",
        "Chunk(chunk.prefix + 1, chunk.length))\n\n\ndef draft_positions",
        "chunk)\n\n\ndef draft_positions",
        "SPECULATION-02",
    ),
    Mutation(
        "the sampled id stands behind the last chunk only",
        "speculation",
        "ids = input_ids[chunk.prefix + 1 : chunk.stop + 1]\n    if chunk.length and chunk.stop == length:",
        "ids = input_ids[chunk.prefix + 1 : chunk.stop]\n    if chunk.length:",
        "SPECULATION-03",
    ),
    Mutation(
        "drafts go on behind the prompt",
        "speculation",
        "extend_positions(positions, length + steps)[:, chunk.prefix : chunk.stop + steps]",
        "np.pad(positions, ((0, 0), (0, steps)), mode='edge')[:, chunk.prefix : chunk.stop + steps]",
        "SPECULATION-09",
    ),
    Mutation("a proposal ends before media", "speculation", "stop[0] if stop.size else None", "None", "SPECULATION-13"),
    Mutation(
        "the longest match counts",
        "speculation",
        "            matched = begins\n",
        "            matched = matched if matched.size else begins\n",
        "SPECULATION-16",
    ),
    Mutation("a match has text behind it", "speculation", "np.flatnonzero(~media)", "np.arange(length)", "SPECULATION-16"),
]
