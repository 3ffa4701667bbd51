"""What is obviously right about kernels that compute: one number after another, in fractions."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

import torch

DIGITS = {torch.float32: (24, -126), torch.float16: (11, -14), torch.bfloat16: (8, -126), torch.float64: (53, -1022)}
"""How many binary digits a number of a dtype has, and the exponent of the smallest one that has all of them."""

Round = Callable[[Fraction], Fraction]


class Heads(NamedTuple):
    """What `apply_mrope` is asked."""

    query: torch.Tensor
    key: torch.Tensor
    positions: torch.Tensor
    table: torch.Tensor
    sections: tuple[int, int, int]
    interleaved: bool
    neighbours: bool

    @property
    def form(self) -> str:
        """Its name among the forms of M-RoPE."""
        return f"{'interleaved' if self.interleaved else 'contiguous'}-{'neighbours' if self.neighbours else 'halves'}"


class Film(NamedTuple):
    """What `dissimilarity` is asked."""

    embeddings: torch.Tensor
    grid: tuple[int, int, int]


class Turned(NamedTuple):
    """A number of a head: what it is turned to, and the sizes of both products that it is the sum of."""

    value: Fraction
    size: Fraction


def nearest(value: Fraction, dtype: torch.dtype) -> Fraction:
    """The number of a dtype that is nearest; of two as near the even one."""
    digits, least = DIGITS[dtype]
    exponent = value.numerator.bit_length() - value.denominator.bit_length()  # the denominator is a power of two
    step = Fraction(2) ** (max(exponent, least) - digits + 1)
    return round(value / step) * step


def unit(dtype: torch.dtype) -> Fraction:
    """The most that rounding to a dtype changes a number by, as a part of it."""
    return Fraction(1, 2 ** DIGITS[dtype][0])


def axis(frequency: int, sections: tuple[int, int, int], interleaved: bool) -> int:
    """Which axis rotates a frequency: the one whose section it lies in, or whose turn it is; time's when that has none left."""
    if not interleaved:
        return 0 if frequency < sections[0] else 1 if frequency < sections[0] + sections[1] else 2
    turn, number = frequency % 3, frequency // 3
    return turn if number < sections[turn] else 0


def turned(heads: torch.Tensor, case: Heads, rounds: Round) -> Iterator[Turned]:
    """Each number of the heads in turn: rounded, if at all, wherever the contract says."""
    half, columns = case.table.shape[1] // 2, case.positions.T.tolist()
    for at, ones in zip(columns, heads.tolist(), strict=True):
        angles = [rounded_angle(case, at, frequency, rounds) for frequency in range(half)]
        for head in ones:
            for place, number in enumerate(head):
                if place >= 2 * half:
                    yield Turned(Fraction(number), Fraction(0))
                    continue
                cosine, sine = angles[place // 2 if case.neighbours else place % half]
                is_first = place % 2 == 0 if case.neighbours else place < half
                beside = (1 if case.neighbours else half) * (1 if is_first else -1)
                one, other = rounds(Fraction(number) * cosine), rounds(Fraction(head[place + beside]) * sine)
                yield Turned(rounds(one - other if is_first else one + other), abs(one) + abs(other))


def rounded_angle(case: Heads, at: list[int], frequency: int, rounds: Round) -> tuple[Fraction, Fraction]:
    """The cosine and the sine of a frequency for a token at this triple."""
    row = case.table[at[axis(frequency, case.sections, case.interleaved)]]
    half = len(row) // 2
    return rounds(Fraction(row[frequency].item())), rounds(Fraction(row[half + frequency].item()))


def rotated(case: Heads) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys, rounded as the contract says."""
    dtype = case.query.dtype

    def made(heads: torch.Tensor) -> torch.Tensor:
        values = [float(one.value) for one in turned(heads, case, lambda value: nearest(value, dtype))]
        return torch.tensor(values, dtype=torch.float64, device="cpu").to(dtype).reshape(heads.shape)

    return made(case.query), made(case.key)


def too_far(observed: torch.Tensor, heads: torch.Tensor, case: Heads) -> list[str]:
    """The numbers that are further from the exact ones than three roundings of their dtype can take them."""
    most = (1 + unit(heads.dtype)) ** 3 - 1
    exact = turned(heads, case, lambda value: value)
    return [
        f"number {n} is {value} and not about {float(right.value)}"
        for n, (value, right) in enumerate(zip(observed.flatten().tolist(), exact, strict=True))
        if not abs(value - float(right.value)) <= most * right.size
    ]


def unlike(film: Film) -> list[Fraction]:
    """1 - cosine of each token behind the first frame and its predecessor, to a hundred binary digits; 1 for zeros."""
    frame = film.grid[1] * film.grid[2]
    tokens = [[Fraction(value) for value in row] for row in film.embeddings.to(torch.float64).tolist()]
    return [1 - _cosine(tokens[n - frame], tokens[n]) for n in range(frame, len(tokens))]


def likeness_bound(film: Film, dtype: torch.dtype) -> Fraction:
    """How far arithmetic of 32 bits in any order can take a dissimilarity that is given in a dtype.

    Of each of three sums of h products the relative error is h roundings at most, of a root half as much; 16 more are for
    the root, the division, the difference and what is of second order. The result is rounded to its dtype: 2 at most.
    """
    return (2 * film.embeddings.shape[1] + 16) * unit(torch.float32) + 2 * unit(dtype)


def stated(film: Film) -> torch.Tensor:
    """The bits that the contract states, in the arithmetic of Python's floats, which have 64 bits."""
    frame = film.grid[1] * film.grid[2]
    tokens = film.embeddings.to(torch.float64).tolist()
    found = [_stated(tokens[n - frame], tokens[n]) for n in range(frame, len(tokens))]
    return torch.tensor([float("inf")] * frame + found, dtype=torch.float64, device="cpu")


def _cosine(one: list[Fraction], other: list[Fraction]) -> Fraction:
    square = sum((a * a for a in one), Fraction(0)) * sum((b * b for b in other), Fraction(0))
    if not square:
        return Fraction(0)
    shift = 2**1000
    root = Fraction(isqrt(square.numerator * shift * shift // square.denominator), shift)
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0)) / root


def _stated(previous: list[float], current: list[float]) -> float:
    both = _sum(a * b for a, b in zip(previous, current, strict=True))
    square = _sum(a * a for a in previous) * _sum(b * b for b in current)
    return 1 - both / square**0.5 if square else 1.0


def _sum(products: Iterator[float]) -> float:
    lanes = [0.0] * 128
    for number, product in enumerate(products):
        lanes[number % 128] += product
    while len(lanes) > 1:
        lanes = [lanes[n] + lanes[n + 1] for n in range(0, len(lanes), 2)]
    return lanes[0]
