"""What kernels that compute are asked: heads and tables of numbers that no rounding touches, and of any; videos."""

from collections.abc import Callable, Mapping, Sequence

import torch

from conformance.cases import Exact
from conformance.oracles import kernels_computing as oracle
from conformance.oracles.kernels_computing import Film, Heads
from conformance.world.videos import video

TRIPLES = ((0, 1, 2, 2, 2, 3, 6), (0, 1, 2, 2, 3, 4, 6), (0, 1, 2, 3, 2, 5, 6))
"""Text, a picture and text: three numbers each."""

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
DTYPES = {"float32": torch.float32, **HALF}


def exact(count: int, *shape: int, part: int = 1) -> torch.Tensor:
    """Numbers of three binary digits, none of them 0: odd ones, divided by `part`."""
    size = torch.Size(shape).numel()
    values = (torch.arange(size, device="cpu") * 5 + count).remainder(7) - 3
    return ((2 * values + 1) / part).reshape(shape)


def rough(seed: int, *shape: int) -> torch.Tensor:
    """Numbers with all their digits."""
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, device="cpu")


def heads(
    sections: tuple[int, int, int],
    form: str,
    *,
    positions: Sequence[Sequence[int]] = TRIPLES,
    counts: tuple[int, int] = (4, 2),
    head_dim: int | None = None,
    dtype: torch.dtype = torch.float32,
    table_dtype: torch.dtype = torch.float32,
    numbers: Callable[..., torch.Tensor] | None = None,
) -> Heads:
    """Queries and keys of so many heads; their numbers are exact unless some other ones are asked for."""
    half, n = sum(sections), len(positions[0])
    size = 2 * half if head_dim is None else head_dim
    rows = max((max(row, default=0) for row in positions), default=0) + 2
    if numbers is None:
        query, key, table = exact(1, n, counts[0], size), exact(3, n, counts[1], size), exact(2, rows, 2 * half, part=8)
    else:
        query, key = numbers(1, n, counts[0], size), numbers(3, n, counts[1], size)
        table = numbers(2, rows, 2 * half).clamp(-1, 1)
    triples = torch.tensor(positions, dtype=torch.int64, device="cpu").reshape(3, n)
    layout, pairs = form.split("-")
    is_turned = (layout == "interleaved", pairs == "neighbours")
    return Heads(query.to(dtype), key.to(dtype), triples, table.to(table_dtype), sections, *is_turned)


TEXT = [[3, 4, 9]] * 3
PICTURE = [[1, 2, 2], [1, 2, 3], [1, 3, 2]]
FORMS = ("contiguous-halves", "interleaved-halves", "contiguous-neighbours", "interleaved-neighbours")
QWEN, GLM = "interleaved-halves", "contiguous-neighbours"


def in_each_form(**made: Mapping[str, object]) -> dict[str, Heads]:
    """The cases of these options, in each form."""
    return {f"{name}-{form}": heads((4, 2, 2), form, **options) for form in FORMS for name, options in made.items()}  # type: ignore[arg-type]


ROTATIONS = {
    **in_each_form(whole={}, part={"head_dim": 21}, text={"positions": TEXT}, bfloat16={"dtype": torch.bfloat16}),
    "qwen2-vl": heads((16, 24, 24), "contiguous-halves", positions=[[4], [7], [9]]),
    "qwen3-vl": heads((24, 20, 20), QWEN, positions=[[4], [7], [9]]),
    "glm-4v": heads((8, 12, 12), GLM, positions=[[4], [7], [9]], head_dim=128),
    "one-key-head": heads((4, 2, 2), QWEN, counts=(8, 1)),
    "as-many-key-heads": heads((4, 2, 2), "contiguous-halves", counts=(3, 3)),
    "one-frequency": heads((0, 1, 0), "contiguous-halves"),
    "one-axis": heads((0, 0, 5), "contiguous-neighbours"),
    "float16": heads((4, 2, 2), QWEN, dtype=torch.float16),
    "a-table-of-half-precision": heads((4, 2, 2), GLM, dtype=torch.float16, table_dtype=torch.float16),
    "edges-of-a-tile": heads((33, 16, 16), "contiguous-halves", counts=(9, 1), head_dim=131),
    "far-away": heads((4, 2, 2), "contiguous-halves", positions=[[40_000], [3], [39_999]]),
}
"""By name, what most rules about M-RoPE are asked: numbers that no rounding touches."""

ROUGH = {
    **{
        f"{form}-{name}": heads((4, 2, 2), form, positions=PICTURE, dtype=dtype, numbers=rough)
        for form in FORMS
        for name, dtype in DTYPES.items()
    },
    **{
        f"a-table-of-{name}": heads(
            (4, 2, 2), "contiguous-halves", positions=PICTURE, dtype=dtype, table_dtype=dtype, numbers=rough
        )
        for name, dtype in HALF.items()
    },
}
"""By name, heads whose numbers have all their digits."""

NOTHING = {form: heads((4, 2, 2), form, positions=[[], [], []]) for form in FORMS}

PLAIN = heads((4, 2, 2), "contiguous-halves")


def turned(case: Heads) -> Exact:
    """Heads, and what they are turned to, to the bit."""
    return Exact(case, oracle.rotated(case))


def compared(film: Film) -> Exact:
    """A video, and how unlike its tokens are, to the bit."""
    return Exact(film, oracle.stated(film))


def among_others(case: Heads) -> Heads:
    """Queries and keys as parts of one tensor, as a model's projection gives them."""
    joint = torch.cat([case.query, case.key, case.key], dim=1)
    return case._replace(query=joint[:, : case.query.shape[1]], key=joint[:, case.query.shape[1] : -case.key.shape[1]])


def of_a_longer_prompt(case: Heads) -> Heads:
    """The positions of a chunk, as a part of those of its prompt."""
    longer = torch.cat([case.positions + 1, case.positions, case.positions], dim=1)
    return case._replace(positions=longer[:, case.positions.shape[1] : 2 * case.positions.shape[1]])


LAYOUTS = {
    "heads-among-others": among_others(heads((4, 2, 2), QWEN)),
    "heads-first": PLAIN._replace(query=PLAIN.query.transpose(0, 1).contiguous().transpose(0, 1)),
    "a-chunk-of-positions": of_a_longer_prompt(heads((4, 2, 2), QWEN)),
    "positions-by-token": PLAIN._replace(positions=PLAIN.positions.T.contiguous().T),
    "a-part-of-a-wider-table": PLAIN._replace(table=torch.cat([PLAIN.table * 3, PLAIN.table], dim=1)[:, 16:]),
    "every-second-number": PLAIN._replace(query=PLAIN.query.repeat_interleave(2, dim=2)[..., ::2]),
}

MISFITS = {
    "a-position-too-few": PLAIN._replace(positions=PLAIN.positions[:, 1:]),
    "two-axes": PLAIN._replace(positions=PLAIN.positions[:2]),
    "sections-too-short": PLAIN._replace(sections=(4, 2, 1)),
    "sections-too-long": PLAIN._replace(sections=(4, 3, 2)),
    "turns-too-short": heads((4, 2, 2), QWEN)._replace(sections=(3, 2, 2)),
    "turns-too-long": heads((4, 2, 2), QWEN)._replace(sections=(5, 2, 2)),
    "a-table-wider-than-a-head": PLAIN._replace(query=PLAIN.query[..., :8], key=PLAIN.key[..., :8]),
    "a-key-too-few": PLAIN._replace(key=PLAIN.key[1:]),
}

OUTSIDE = {
    name: PLAIN._replace(positions=torch.cat([PLAIN.positions[:, 1:], torch.tensor(triple).reshape(3, 1)], dim=1))
    for name, triple in {
        "one-beyond": (2, 8, 2),
        "negative": (-1, 3, 4),
        "all-beyond": (8, 8, 8),
        "far-beyond": (2, 3, 2**40),
        "far-before": (2, -(2**40), 4),
    }.items()
}


def film(drawing: str, dtype: torch.dtype = torch.float32, hidden: int = 4) -> Film:
    """A drawing as `video` has it, its numbers repeated until there are `hidden`, which is four times a square."""
    shown = video(drawing, 0.0, dtype)
    return Film(shown.embeddings.repeat(1, hidden // 4), shown.grid)


def rough_film(frames: int, tokens: int, hidden: int, dtype: torch.dtype = torch.float32) -> Film:
    """Tokens with all their digits, some of them much like their predecessors."""
    values = rough(hidden, frames, tokens, hidden)
    values[1:, ::2] = values[:-1, ::2] + 0.01 * values[1:, ::2]
    return Film(values.reshape(frames * tokens, hidden).to(dtype), (frames, 1, tokens))


DRAWINGS = {
    "alike": "aaaa|aaaa|aaaa",
    "all-angles": "abcde|aaaaa|edcba",
    "rows": "ab/cd|ba/dc|ab/cd",
    "one-place": "a|b|c|e|a",
    "longer": "aabb|AABC|ABbc",
    "there-and-back": "aaxx|bbaa|aaxx",
    "one-frame": "abcde",
}
FILMS = {
    **{name: film(drawing) for name, drawing in DRAWINGS.items()},
    **{f"all-angles-in-{name}": film("abcde|aaaaa|edcba", dtype) for name, dtype in HALF.items()},
    "wide": film("abcde|aaaaa|edcba", hidden=4 * 256),
    "many-tokens": film("|".join(["abcde" * 30, "aaaaa" * 30, "edcba" * 30])),
}
"""By name, videos whose cosines are exact in any arithmetic."""

ROUGH_FILMS = {
    **{f"{name}-of-{hidden}": rough_film(3, 3, hidden, dtype) for name, dtype in DTYPES.items() for hidden in (1, 7, 127, 300)},
    "one-frame": rough_film(1, 3, 5),
}

EMPTY_FILMS = {
    **{f"zeros-in-{name}": film("a0a0|00a0|0a0a", dtype) for name, dtype in DTYPES.items()},
    "a-zero-frame": film("abcd|0000|abcd"),
    "all-zeros": film("00|00"),
    "no-numbers": Film(torch.zeros(4, 0), (2, 1, 2)),
}

COPIES = {
    **{f"{name}-of-{hidden}": rough_film(1, 5, hidden, dtype) for name, dtype in DTYPES.items() for hidden in (3, 129, 1152)},
}
COPIES = {name: Film(one.embeddings.repeat(3, 1), (3, 1, 5)) for name, one in COPIES.items()}
"""Videos in which nothing moves."""

LARGE = {
    "large": Film(rough_film(2, 3, 9).embeddings * 1e30, (2, 1, 3)),
    "small": Film(rough_film(2, 3, 9).embeddings * 1e-30, (2, 1, 3)),
    "both": Film(rough_film(2, 3, 9).embeddings * torch.tensor([1e30, 1e-30, 1] * 2)[:, None], (2, 1, 3)),
    "largest-in-bfloat16": Film(torch.full((2, 64), 3e38, dtype=torch.bfloat16), (2, 1, 1)),
}

APART = {
    "transposed": Film(rough(1, 6, 8).T[:, :6], (4, 2, 1)),
    "every-second": Film(rough(2, 8, 12)[:, ::2], (4, 1, 2)),
    "a-part-of-wider-rows": Film(rough(3, 8, 9)[:, 2:7], (2, 2, 2)),
    "every-second-row": Film(rough(4, 12, 5)[::2], (3, 1, 2)),
    "one-token-for-all": Film(rough(5, 1, 5).expand(6, 5), (3, 1, 2)),
}

MISSHAPEN = {
    "a-row-too-few": Film(rough(1, 7, 3), (2, 2, 2)),
    "a-row-too-many": Film(rough(1, 9, 3), (2, 2, 2)),
    "a-frame-for-all": Film(rough(1, 4, 3), (2, 2, 2)),
    "no-frames": Film(rough(1, 0, 3), (0, 2, 2)),
    "by-frame": Film(rough(1, 2, 4, 3), (2, 2, 2)),
}
