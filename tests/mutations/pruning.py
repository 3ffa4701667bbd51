"""Mutations of `pruning`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("a rate is the decimal that was written", "pruning", "Fraction(str(rate))", "Fraction(float(rate))", "PRUNING-02"),
    Mutation(
        "of equally unlike tokens the earlier one stays",
        "pruning",
        "torch.argsort(unlike, descending=True, stable=True)",
        "torch.argsort(unlike, stable=True).flip(0)",
        "PRUNING-08",
    ),
    Mutation("a kept token keeps its own position", "pruning", "] = part", "] = np.sort(part)[::-1]", "PRUNING-14"),
    Mutation(
        "the delta is that of the pruned prompt",
        "pruning",
        "int(kept.max()) + 1 - kept.shape[1]",
        "int(kept.max()) + 1 - positions.shape[1]",
        "PRUNING-17",
    ),
]
