"""Mutations of `preprocessing`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("the processor is part of the key", "preprocessing/background", "processor.encode()", 'b""', "PREPROCESSING-02"),
    Mutation("so are the options", "preprocessing/background", ", fields=mine)", ")", "PREPROCESSING-03"),
    Mutation(
        "but not those of other modalities",
        "preprocessing/background",
        "return options.get(modality, {})",
        "return {name.name: dict(values) for name, values in options.items()}",
        "PREPROCESSING-05",
    ),
    Mutation(
        "work is on what was submitted",
        "preprocessing/background",
        "feature=_copy(item.feature)",
        "feature=item.feature",
        "PREPROCESSING-13",
    ),
    Mutation(
        "no more waits than may",
        "preprocessing/background",
        "if len(self._runs) >= self._most_runs:",
        "if False:",
        "PREPROCESSING-09",
    ),
    Mutation(
        "who has left is not waited for",
        "preprocessing/background",
        "if not run.waiters and run.handle",
        "if run.handle",
        "PREPROCESSING-18",
    ),
    Mutation(
        "what nobody waits for does not begin",
        "preprocessing/background",
        "if not run.waiters and run.handle and run.handle.cancel():",
        "if False:",
        "PREPROCESSING-20",
    ),
    Mutation(
        "work from before a clear is not kept here either",
        "preprocessing/background",
        " and run.generation == self._generation",
        "",
        "PREPROCESSING-24",
    ),
    Mutation("nor joined", "preprocessing/background", "            self._shared.clear()\n", "", "PREPROCESSING-25"),
    Mutation("a failure is not kept", "preprocessing/background", "if error is None and size", "if size", "PREPROCESSING-26"),
    Mutation(
        "a hit counts as a use",
        "preprocessing/background",
        "                self._kept.move_to_end(key)\n",
        "",
        "PREPROCESSING-31",
    ),
    Mutation(
        "a waiter has a copy of its own", "preprocessing/background", "own = _copy(result)", "own = result", "PREPROCESSING-35"
    ),
    Mutation(
        "so has the cache",
        "preprocessing/background",
        "result = _copy(self._work(",
        "result = (lambda made: made)(self._work(",
        "PREPROCESSING-36",
    ),
    Mutation(
        "what both sides forget is decided by use",
        "preprocessing/mirror",
        "                    self._uses.use([(key, made[key].nbytes if key in made else known[key]) for key in wanted])\n",
        "                    self._uses.use([(key, made[key].nbytes) for key in wanted if key in made])\n",
        "PREPROCESSING-37",
    ),
    Mutation(
        "what the receiver lacks is known to it as lacking",
        "preprocessing/mirror",
        "message.results.get(key, self._kept.get(key))",
        "message.results.get(key, self._kept[key] if key in message.results else self._kept[key])",
        "PREPROCESSING-40",
    ),
    Mutation(
        "what is too large is not kept",
        "preprocessing/mirror",
        "            if size <= self.capacity_bytes:\n",
        "            if True:\n",
        "PREPROCESSING-38",
    ),
    Mutation(
        "what is lacking is forgotten by the sender",
        "preprocessing/mirror",
        "            for key in keys:\n                self._uses.forget(key)\n",
        "            pass\n",
        "PREPROCESSING-40",
    ),
]
