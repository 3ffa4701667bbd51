"""Mutations of `pipeline_ranks`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "later ranks embed nothing",
        "pipeline_ranks",
        "        hidden_states, deepstack = received\n",
        "        hidden_states, deepstack = received\n        encode([(request, chunk)], encoders)\n",
        "PIPELINE_RANKS-03",
    ),
    Mutation(
        "rows travel on to their layer",
        "pipeline_ranks",
        "if layer >= split[rank].stop}",
        "if layer > split[rank].stop}",
        "PIPELINE_RANKS-04",
    ),
    Mutation(
        "rows travel no further than that",
        "pipeline_ranks",
        "for layer, rows in deepstack.items() if layer >= split[rank].stop}",
        "for layer, rows in deepstack.items()}",
        "PIPELINE_RANKS-05",
    ),
    Mutation(
        "a level goes to the layer that takes it",
        "pipeline_ranks",
        "dict(zip(level_layers, levels, strict=True))",
        "dict(enumerate(levels))",
        "PIPELINE_RANKS-04",
    ),
    Mutation(
        "missing rows are missed",
        "pipeline_ranks",
        "            _check_received(rank, split, level_layers, deepstack)\n",
        "            pass\n",
        "PIPELINE_RANKS-07",
    ),
    Mutation(
        "the rows of later ranks are missed as well",
        "pipeline_ranks",
        "if layer >= split[rank].start and layer not in deepstack",
        "if layer in split[rank] and layer not in deepstack",
        "PIPELINE_RANKS-07",
    ),
    Mutation("the layers of ranks join", "pipeline_ranks", "before.stop != after.start", "False", "PIPELINE_RANKS-08"),
    Mutation(
        "no two levels share a layer",
        "pipeline_ranks",
        "if len({*level_layers}) != len(level_layers):",
        "if False:",
        "PIPELINE_RANKS-08",
    ),
]
