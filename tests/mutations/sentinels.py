"""Mutations of `sentinels`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("sentinels lie above every vocabulary", "sentinels", "(SHIFT + (word", "((word", "SENTINELS-06"),
    Mutation(
        "words of a digest are big-endian",
        "sentinels",
        '">u8"',
        '"<u8"',
        "SENTINELS-06",
    ),
    Mutation("a vocabulary of exactly the limit is taken", "sentinels", "if size > SHIFT", "if size >= SHIFT", "SENTINELS-09"),
    Mutation(
        "every span begins with the first sentinel",
        "sentinels",
        "[..., :length]",
        "[..., 4 * rounds - length :]",
        "PLACEHOLDERS-05",
    ),
]
