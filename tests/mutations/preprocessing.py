"""Mutations of `preprocessing`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("the processor is part of the key", "preprocessing", "processor.encode()", 'b""', "PREPROCESSING-02"),
    Mutation("so are the options", "preprocessing", ", fields=mine)", ")", "PREPROCESSING-03"),
    Mutation(
        "but not those of other modalities",
        "preprocessing",
        "return options.get(modality, {})",
        "return {name.name: dict(values) for name, values in options.items()}",
        "PREPROCESSING-05",
    ),
    Mutation(
        "work is on what was submitted",
        "preprocessing",
        "feature=_copy(item.feature)",
        "feature=item.feature",
        "PREPROCESSING-13",
    ),
    Mutation(
        "no more waits than may", "preprocessing", "if len(self._runs) >= self._most_runs:", "if False:", "PREPROCESSING-09"
    ),
    Mutation(
        "who has left is not waited for",
        "preprocessing",
        "if not run.waiters and run.handle",
        "if run.handle",
        "PREPROCESSING-18",
    ),
    Mutation(
        "what nobody waits for does not begin",
        "preprocessing",
        "if not run.waiters and run.handle and run.handle.cancel():",
        "if False:",
        "PREPROCESSING-20",
    ),
    Mutation(
        "work from before a clear is not kept here either",
        "preprocessing",
        " and run.generation == self._generation",
        "",
        "PREPROCESSING-24",
    ),
    Mutation("nor joined", "preprocessing", "            self._shared.clear()\n", "", "PREPROCESSING-25"),
    Mutation("a failure is not kept", "preprocessing", "if error is None and size", "if size", "PREPROCESSING-26"),
    Mutation("a hit counts as a use", "preprocessing", "                self._kept.move_to_end(key)\n", "", "PREPROCESSING-31"),
    Mutation("a waiter has a copy of its own", "preprocessing", "own = _copy(result)", "own = result", "PREPROCESSING-35"),
    Mutation(
        "so has the cache",
        "preprocessing",
        "result = _copy(self._work(",
        "result = (lambda made: made)(self._work(",
        "PREPROCESSING-36",
    ),
]
