"""Every kernel equals the path on a CPU, bit by bit: on a GPU where there is one, elsewhere in Triton's interpreter.

Not collected with the other tests, for Triton is told before its first import whether it interprets:
`pytest tests/device_kernels.py`, in a process of its own, with Triton installed.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from blake3 import blake3

DEVICE = torch.device("cuda", torch.cuda.device_count() - 1) if torch.cuda.is_available() else torch.device("cpu")
"""The last GPU: where there are several, it is not the current one."""
if DEVICE.type == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

from reference import pruning
from reference.items import Chunk, Span
from reference.kernels import frames, hashing, masks, rotation, rows
from reference.kernels.device import blake3 as tree
from reference.kernels.dispatch import Path, path_of

LENGTHS = (0, 1, 3, 4, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 5000, 31751, 2**20 + 1)
DTYPES = (
    torch.bool, torch.uint8, torch.int16, torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64,
    torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip


def to_device(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, torch.Tensor) else value


def by_kernel(operation: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a kernel gives; it must be a kernel that was used."""

    def path(**tensors: torch.Tensor) -> Path:
        return Path.TRITON if path_of(**tensors) is Path.CPU and DEVICE.type == "cpu" else path_of(**tensors)

    with pytest.MonkeyPatch.context() as patch:
        for module in (frames, hashing, masks, rotation, rows):
            patch.setattr(module, "path_of", path)
        computed = operation(*map(to_device, arguments), **options)
    assert computed.path is Path.TRITON
    return computed.value


def assert_same_bits(observed: torch.Tensor, expected: torch.Tensor) -> None:
    assert (observed.dtype, observed.shape, observed.device) == (expected.dtype, expected.shape, DEVICE)
    assert observed.cpu().contiguous().flatten().view(torch.uint8).equal(expected.contiguous().flatten().view(torch.uint8))


def noise(count: int, seed: int = 0) -> torch.Tensor:
    """Bytes of any value: also those that make a NaN with a payload, or a bool that is neither 0 nor 1."""
    return torch.randint(0, 256, (count,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def matrix(height: int, width: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    data = noise(height * width * dtype.itemsize, seed)
    return (data % 2 if dtype is torch.bool else data).view(dtype).reshape(height, width)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 4095, 4096, 32767, 32768, 32769, 65536, 100_003])
def test_the_word_hash(count: int) -> None:
    assert by_kernel(hashing.word_hash, noise(count)) == hashing.word_hash(noise(count)).value


@pytest.mark.parametrize("skipped", [1, 2, 3, 5])
def test_the_hashes_of_bytes_that_begin_anywhere(skipped: int) -> None:
    data = to_device(noise(200))[skipped:]
    assert by_kernel(hashing.word_hash, data) == hashing.word_hash(noise(200)[skipped:]).value
    assert by_kernel(hashing.content_digest, data) == blake3(noise(200)[skipped:].numpy().tobytes()).digest()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_hashes_of_any_dtype_and_layout(dtype: torch.dtype) -> None:
    values = matrix(3, 5, dtype).T
    assert by_kernel(hashing.word_hash, values) == hashing.word_hash(values).value
    assert by_kernel(hashing.content_digest, values) == hashing.content_digest(values).value


@pytest.mark.parametrize("count", LENGTHS)
def test_the_digest(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE.type == "cpu" and count > 2**17:
        monkeypatch.setitem(tree.LANES, "BLOCK", 2048)  # a program takes seconds there, however many lanes it has
    assert by_kernel(hashing.content_digest, noise(count)) == blake3(noise(count).numpy().tobytes()).digest()


def test_the_digest_by_several_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tree.LANES, "BLOCK", 2)
    assert by_kernel(hashing.content_digest, noise(2049)) == blake3(noise(2049).numpy().tobytes()).digest()


def test_the_hashes_of_more_bytes_than_32_bits_can_count() -> None:
    data = noise(2**31 + 5 if DEVICE.type == "cuda" else 3)  # an interpreter would need hours
    assert by_kernel(hashing.word_hash, data) == hashing.word_hash(data).value
    assert by_kernel(hashing.content_digest, data) == hashing.content_digest(data).value


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 2100])
def test_the_mask_by_sentinels(count: int, kind: torch.dtype) -> None:
    ids = (noise(count).to(kind) - 5) % 40 - 5
    for sentinels in ([], [3], [-(2**62), -4, -1, 3, 7, 2**32 + 5, 2**62]):
        wanted = torch.tensor(sentinels, dtype=torch.int64)
        assert_same_bits(by_kernel(masks.placeholder_mask, ids, wanted), masks.placeholder_mask(ids, wanted).value)


@pytest.mark.parametrize("chunk", [Chunk(0, 1030), Chunk(7, 1024), Chunk(8, 2), Chunk(1020, 9), Chunk(5, 0)])
def test_the_mask_by_spans(chunk: Chunk) -> None:
    for spans in ([], [Span(8, 9)], [Span(1020, 1026), Span(5, 9), Span(10, 10)]):
        observed = by_kernel(masks.span_mask, spans, chunk, device=DEVICE)
        assert_same_bits(observed, masks.span_mask(spans, chunk).value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_that_are_scattered(dtype: torch.dtype) -> None:
    mask = noise(17) < 128
    given = matrix(17, 130, dtype), mask, matrix(int(mask.sum()), 130, dtype, seed=1)
    assert_same_bits(by_kernel(rows.scatter_rows, *given), rows.scatter_rows(*given).value)


@pytest.mark.parametrize(("height", "width"), [(0, 5), (5, 0), (1, 1), (8, 128), (9, 129), (7, 127)])
def test_rows_of_any_shape_that_are_scattered(height: int, width: int) -> None:
    mask = noise(height) < 128
    given = matrix(height, width, torch.int16), mask, matrix(int(mask.sum()), width, torch.int16, seed=1)
    assert_same_bits(by_kernel(rows.scatter_rows, *given), rows.scatter_rows(*given).value)


def test_rows_that_lie_apart() -> None:
    wide = to_device(matrix(6, 9, torch.float32))
    mask = torch.tensor([True, False, True, True, False, True])
    for kept, taken in (
        (wide[:, 2:7], wide[::2, 4:]),
        (wide[:, ::2], wide[1:4].flip(1)[:, :5]),
        (wide.T[:6, :5], wide[:4, :5]),
    ):
        picked = taken.repeat(2, 1)[:4]
        expected = rows.scatter_rows(kept.cpu(), mask, picked.cpu()).value
        assert_same_bits(by_kernel(rows.scatter_rows, kept, mask, picked), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("levels", [0, 2])
def test_the_merge(dtype: torch.dtype, levels: int) -> None:
    spans, chunk = [Span(9, 20), Span(3, 5)], Chunk(4, 20)
    ids = noise(20).to(torch.int64) - 20
    given = ids, spans, matrix(14, 130 * (1 + levels), dtype, seed=1), matrix(200, 130, dtype), chunk
    assert_merged(*given)


@pytest.mark.parametrize("chunk", [Chunk(0, 40), Chunk(5, 0), Chunk(3, 1), Chunk(10, 30), Chunk(19, 2)])
@pytest.mark.parametrize("width", [1, 127, 129])
def test_the_merge_of_any_chunk(chunk: Chunk, width: int) -> None:
    spans = [Span(3, 5), Span(9, 20), Span(21, 21), Span(30, 60)]
    count = masks.SpansOfChunk.of(spans, chunk).total
    ids = torch.arange(chunk.length, dtype=torch.int32) - 2
    assert_merged(ids, spans, matrix(count, width, torch.int32, seed=1), matrix(30, width, torch.int32), chunk)


def test_the_merge_clamps_ids_of_text() -> None:
    ids = torch.tensor([-(2**63), -1, 0, 4, 5, 2**32, 2**63 - 1])
    assert_merged(ids, [], matrix(0, 3, torch.int32), matrix(5, 3, torch.int32), Chunk(0, 7))


def assert_merged(*given: Any) -> None:
    for observed, expected in zip(by_kernel(rows.fused_merge, *given), rows.fused_merge(*given).value, strict=True):
        assert_same_bits(observed, expected)


def test_a_table_of_more_elements_than_32_bits_can_count() -> None:
    table = torch.empty(2**15 + 1, 2**16, dtype=torch.uint8, device=DEVICE)  # on a CPU, memory that is only reserved
    table[-1] = noise(2**16).to(DEVICE)
    ids, nothing = torch.tensor([2**15]), torch.empty(0, 2**16, dtype=torch.uint8)
    merged, _ = by_kernel(rows.fused_merge, ids, [], nothing, table, Chunk(0, 1))
    assert_same_bits(merged, noise(2**16).reshape(1, -1))


FORMS = [(interleaved, neighbours) for interleaved in (False, True) for neighbours in (False, True)]


def table(count: int, frequencies: int) -> torch.Tensor:
    angles = torch.arange(count)[:, None] / 7 ** torch.linspace(0, 3, frequencies)
    return torch.cat([angles.cos(), angles.sin()], dim=1)


def assert_rotated(*given: Any) -> None:
    for observed, expected in zip(by_kernel(rotation.apply_mrope, *given), rotation.apply_mrope(*given).value, strict=True):
        assert_same_bits(observed, expected)


@pytest.mark.parametrize("dtype", rotation.DTYPES, ids=str)
@pytest.mark.parametrize(("interleaved", "neighbours"), FORMS)
def test_heads_that_are_turned(dtype: torch.dtype, interleaved: bool, neighbours: bool) -> None:
    random = torch.Generator().manual_seed(0)
    query, key = (torch.randn(9, heads, 130, generator=random).to(dtype) for heads in (6, 2))
    positions = torch.randint(0, 50, (3, 9), generator=random)
    for angles in (table(50, 64), table(50, 64).to(dtype)):
        assert_rotated(query, key, positions, angles, (24, 20, 20), interleaved, neighbours)


@pytest.mark.parametrize("dtype", rotation.DTYPES, ids=str)
def test_heads_of_any_size_that_are_turned(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    for n, heads, width in ((0, 2, 8), (1, 1, 2), (3, 0, 8), (2, 5, 6), (1, 1, 257), (17, 3, 129)):
        half = min(3, width // 2)
        query, key = (torch.randn(n, count, width, generator=random).to(dtype) for count in (heads, 1))
        positions = torch.randint(0, 5, (3, n), generator=random)
        assert_rotated(query, key, positions, table(5, half), (half - half // 3 * 2, half // 3, half // 3), True, True)
        assert_rotated(query, key, positions, table(5, half), (0, half, 0), False, False)


def test_heads_that_lie_among_others_are_turned() -> None:
    joint = torch.randn(5, 10, 16, dtype=torch.float32, generator=torch.Generator().manual_seed(2)).bfloat16()
    positions = torch.arange(30).reshape(5, 6).T[::2]
    assert_rotated(joint[:, :6], joint[:, 6:8], positions, table(40, 8).T.contiguous().T, (4, 2, 2), True, False)
    assert_rotated(
        joint.transpose(1, 2)[:, :6], joint.transpose(1, 2)[:, 6:8], positions, table(40, 4), (2, 1, 1), False, False
    )


@pytest.mark.parametrize("dtype", rotation.DTYPES, ids=str)
def test_what_is_turned_is_rounded_to_the_nearest(dtype: torch.dtype) -> None:
    """All kinds of numbers but NaN: the smallest, the largest, and those that lie between two."""
    values = noise(4 * 8 * 64 * dtype.itemsize, 3).view(dtype).reshape(4, 8, 64)
    heads = torch.where(values.isfinite(), values, 0)
    numbers = noise(20 * 64 * 4, 4).view(torch.float32).reshape(20, 64)
    angles = torch.where(numbers.abs() < 1, numbers, 0.7)
    assert_rotated(heads, heads[:, :1] * 0.001, torch.arange(12).reshape(3, 4), angles, (16, 8, 8), False, False)


@pytest.mark.parametrize("dtype", rotation.DTYPES, ids=str)
@pytest.mark.parametrize("hidden", [0, 1, 127, 128, 129, 700])
def test_frames_that_are_compared(dtype: torch.dtype, hidden: int) -> None:
    tokens = torch.randn(7 * 6, hidden, generator=torch.Generator().manual_seed(hidden)).to(dtype)
    tokens[8:11], tokens[20] = tokens[2:5], 0
    for grid in ((7, 2, 3), (1, 6, 7), (42, 1, 1)):
        assert_same_bits(by_kernel(frames.dissimilarity, tokens, grid), pruning.dissimilarity(tokens, grid))


def test_frames_of_all_kinds_of_numbers_that_lie_apart() -> None:
    values = noise(9 * 40 * 4, 5).view(torch.float32).reshape(9, 40)
    wide = torch.where(values.isfinite(), values, 0)
    for tokens in (wide[:, 3:30], wide[:, ::2], wide.T[:9, :7]):
        assert_same_bits(
            by_kernel(frames.dissimilarity, to_device(tokens), (3, 3, 1)), pruning.dissimilarity(tokens, (3, 3, 1))
        )


def test_a_table_of_angles_of_more_elements_than_32_bits_can_count() -> None:
    angles = torch.empty(2**15 + 1, 2**16, dtype=torch.float16, device=DEVICE)  # on a CPU, memory that is only reserved
    angles[-1, :8], heads = 0.5, torch.ones(1, 1, 8, dtype=torch.float16)
    turned, _ = by_kernel(rotation.apply_mrope, heads, heads, torch.full((3, 1), 2**15), angles[:, :8], (2, 1, 1), False, True)
    assert_same_bits(turned, torch.tensor([0.0, 1.0], dtype=torch.float16).repeat(1, 1, 4))


def test_a_frame_of_more_elements_than_32_bits_can_count() -> None:
    tokens = torch.empty(2, 2**31 + 5, dtype=torch.bfloat16, device=DEVICE)  # on a CPU, memory that is only reserved
    tokens[:, :2] = 1
    observed = by_kernel(frames.dissimilarity, tokens[:, :2], (2, 1, 1))
    assert_same_bits(observed, torch.tensor([torch.inf, 0.0], dtype=torch.float64))


def test_the_default_device_does_not_matter() -> None:
    mask, values, ids = noise(9) < 128, matrix(9, 5, torch.float16), torch.arange(9)
    heads, triples, angles = table(9, 5).reshape(9, 2, 5).half(), ids.repeat(3, 1), table(9, 2)
    unlike = pruning.dissimilarity(heads[:, 0], (3, 3, 1))
    picked = values[mask]
    expected = (
        hashing.word_hash(values).value,
        hashing.content_digest(values).value,
        rows.scatter_rows(values, mask, picked).value,
    )
    with torch.device("meta"):
        assert by_kernel(hashing.word_hash, values) == expected[0]
        assert by_kernel(hashing.content_digest, values) == expected[1]
        assert_same_bits(by_kernel(rows.scatter_rows, values, mask, picked), expected[2])
        assert by_kernel(masks.placeholder_mask, ids, ids[2:4]).tolist() == [n in (2, 3) for n in range(9)]
        assert by_kernel(masks.span_mask, [Span(2, 3)], Chunk(0, 9), device=DEVICE).tolist() == [n in (2, 3) for n in range(9)]
        assert_merged(ids, [Span(2, 3)], values[:2], values, Chunk(0, 9))
        assert_rotated(heads, heads[:, 1:], triples, angles, (1, 0, 1), False, False)
        assert_same_bits(by_kernel(frames.dissimilarity, heads[:, 0], (3, 3, 1)), unlike)
