"""Mutations of `positions`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "text goes on behind the time of a video",
        "positions",
        "_next(blocks[shape]) - count",
        "_next(blocks[shape][1:]) - count",
        "POSITIONS-01",
    ),
    Mutation(
        "time is multiplied from left to right",
        "positions",
        "block[0].astype(np.float32) * seconds * rate",
        "block[0].astype(np.float32) * (seconds * rate)",
        "POSITIONS-13",
    ),
    Mutation(
        "frames that are apart have no time",
        "positions",
        "(shape.frames, 1) if",
        "(shape.frames, shape.frames) if",
        "POSITIONS-05",
    ),
    Mutation(
        "a reply goes on behind the largest number on any axis",
        "positions",
        "triples.max(initial=-1)",
        "triples[0].max(initial=-1)",
        "POSITIONS-16",
    ),
    Mutation(
        "a retracted request goes on behind its prompt",
        "positions",
        "[extend_positions(triples, triples.shape[1] + reply) for reply in replies]",
        "[triples := extend_positions(triples, triples.shape[1] + reply) for reply in replies]",
        "POSITIONS-28",
    ),
    Mutation(
        "a recording counts from where its video does",
        "positions",
        "np.arange(film.audio.token_count) + origin",
        "np.arange(film.audio.token_count) + triples[0, film.audio.spans[0].first]",
        "POSITIONS-24",
    ),
    Mutation(
        "text goes on behind the longer of a video and its recording",
        "positions",
        "max(_next(blocks[film.shape]), film.audio.token_count)",
        "film.audio.token_count",
        "POSITIONS-24",
    ),
    Mutation("height and width have only their turns", "positions", "axis : 3 * sections[axis] : 3", "axis::3", "POSITIONS-27"),
]
