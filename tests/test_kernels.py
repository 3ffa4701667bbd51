"""What the reference promises about kernels beyond the requirements: how it decides, where it launches, what it says."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance.suite.kernels_cases import merge, numbers, pattern, scatter
from conformance.suite.kernels_computing_cases import PLAIN, rough
from reference.items import Chunk, Span
from reference.kernels import hashing
from reference.kernels.device import bandwidth
from reference.kernels.device.launching import where
from reference.kernels.dispatch import Path, movable, octets, path_of
from reference.kernels.frames import dissimilarity
from reference.kernels.hashing import content_digest, word_hash
from reference.kernels.masks import SpansOfChunk, placeholder_mask, span_mask
from reference.kernels.rotation import apply_mrope
from reference.kernels.rows import fused_merge, scatter_rows

NOWHERE = torch.empty(2, 3, device="meta")


def test_an_operation_says_how_it_was_computed() -> None:
    computed = (
        word_hash(pattern(9)),
        content_digest(pattern(9)),
        placeholder_mask(torch.arange(3), torch.arange(1)),
        span_mask([], Chunk(0, 1)),
        scatter_rows(*scatter(".#.")),
        fused_merge(*merge([(0, 1)], Chunk(0, 3))),
        apply_mrope(*PLAIN),
        dissimilarity(rough(1, 4, 3), (2, 1, 2)),
    )
    assert {one.path for one in computed} == {Path.CPU}


def test_tensors_of_several_devices_are_named() -> None:
    elsewhere: Any = SimpleNamespace(
        layout=torch.strided, is_nested=False, is_quantized=False, is_meta=False, device=torch.device("cuda", 1)
    )
    assert path_of(rows=elsewhere) is Path.TRITON
    with pytest.raises(ValueError, match="several devices: rows on cuda:1, table on cpu"):
        path_of(rows=elsewhere, table=pattern(3))


def test_a_device_without_kernels_is_named() -> None:
    elsewhere: Any = SimpleNamespace(
        layout=torch.strided, is_nested=False, is_quantized=False, is_meta=False, device=torch.device("mps")
    )
    with pytest.raises(ValueError, match="rows on mps: there are kernels for a CPU and for GPUs"):
        path_of(rows=elsewhere)


@pytest.mark.parametrize("tensor", [NOWHERE, torch.eye(2).to_sparse()])
def test_a_tensor_without_plain_memory_is_refused(tensor: torch.Tensor) -> None:
    with pytest.raises(TypeError, match="tensor is a sparse, nested, quantized or meta tensor"):
        word_hash(tensor)


def test_a_launch_is_on_the_device_of_the_tensor() -> None:
    tensor: Any = SimpleNamespace(is_cuda=True, device=torch.device("cuda", 3))
    guard = where(tensor)
    assert isinstance(guard, torch.cuda.device)
    assert guard.idx == 3


def test_triton_is_not_imported_for_a_cpu() -> None:
    script = (
        "import sys, torch\n"
        "from reference.kernels import frames, hashing, masks, rotation, rows\n"
        "hashing.word_hash(torch.ones(3)); hashing.content_digest(torch.ones(3))\n"
        "print([name for name in sys.modules if name.startswith('reference.kernels.device')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_word_hash_of_many_tiles_does_not_depend_on_how_many_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pattern(7 * 4 * hashing.TILE_WORDS + 5)
    expected = word_hash(data)
    monkeypatch.setattr(hashing, "_TILES_AT_ONCE", 2)
    assert word_hash(data) == expected


def test_bytes_are_a_view_where_that_is_possible() -> None:
    assert octets(values := numbers(3, 4)).data_ptr() == values.data_ptr()
    assert octets(values.T).tolist() == octets(values.T.contiguous()).tolist()
    assert octets(torch.tensor([1 + 2j]).conj()).tolist() == octets(torch.tensor([1 - 2j])).tolist()


@pytest.mark.parametrize(
    "rows", [numbers(3, 4)[:, 1:3], numbers(4, 3).T, numbers(3, 1), numbers(0, 4), numbers(4, 6)[::2, ::3]]
)
def test_rows_that_are_moved_keep_their_values(rows: torch.Tensor) -> None:
    assert torch.equal(movable(rows), rows.contiguous().view(torch.int32))
    assert movable(rows).stride(1) == 1


def test_spans_are_cut_to_the_chunk_and_know_the_rows_before_them() -> None:
    found = SpansOfChunk.of([Span(9, 12), Span(0, 1), Span(3, 5)], Chunk(4, 6))
    assert (found.firsts.tolist(), found.stops.tolist(), found.ranks.tolist(), found.total) == ([0, 5], [2, 6], [0, 2], 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: placeholder_mask(torch.ones(3), torch.arange(2)), TypeError, "input_ids are torch.float32; ids are int32"),
        (
            lambda: placeholder_mask(torch.ones(2, 2).long(), torch.arange(2)),
            ValueError,
            r"the shape \[2, 2\]; they are one seq",
        ),
        (lambda: placeholder_mask(torch.arange(3), torch.ones(2)), TypeError, "sentinels are torch.float32; they have 64 bits"),
        (lambda: placeholder_mask(torch.arange(3), torch.ones(1, 2).long()), ValueError, "sentinels have the shape"),
        (lambda: span_mask([Span(0, 3), Span(3, 4)], Chunk(0, 9)), ValueError, "two spans overlap at position 3"),
        (lambda: scatter_rows(*scatter(".#.")._replace(rows=numbers(2, 3))), ValueError, "2 rows for 1 positions of the mask"),
        (lambda: scatter_rows(*scatter(".#.")._replace(rows=numbers(1, 2))), ValueError, "rows of 2 columns for a dest"),
        (lambda: scatter_rows(*scatter(".#.")._replace(rows=numbers(1, 3).half())), TypeError, "convert nothing"),
        (lambda: scatter_rows(*scatter(".#.")._replace(rows=pattern(12).float())), ValueError, r"the shape \[12\]"),
        (lambda: scatter_rows(*scatter(".#.")._replace(mask=torch.arange(3))), TypeError, "a mask is of bools"),
        (
            lambda: scatter_rows(*scatter(".#.")._replace(mask=torch.ones(2) > 0)),
            ValueError,
            r"the shape \[2\] for 3 positions",
        ),
        (
            lambda: fused_merge(*merge([(0, 1)], Chunk(0, 3))._replace(rows=numbers(2, 4))),
            ValueError,
            "the model takes 3, or a",
        ),
        (lambda: fused_merge(*merge([(0, 1)], Chunk(0, 3))._replace(rows=numbers(3, 3))), ValueError, "3 rows for 2 positions"),
        (lambda: fused_merge(*merge([(0, 1)], Chunk(0, 3))._replace(chunk=Chunk(0, 4))), ValueError, "3 ids for Chunk"),
        (lambda: fused_merge(*merge([(0, 1)], Chunk(0, 3))._replace(table=numbers(0, 3))), ValueError, "no embeddings"),
        (lambda: apply_mrope(*PLAIN._replace(key=PLAIN.key.half())), TypeError, "key torch.float16"),
        (lambda: apply_mrope(*PLAIN._replace(query=PLAIN.query.long(), key=PLAIN.key.long())), TypeError, "heads are of one"),
        (lambda: apply_mrope(*PLAIN._replace(positions=PLAIN.positions.int())), TypeError, "they have 64 bits"),
        (lambda: apply_mrope(*PLAIN._replace(key=PLAIN.key[0])), ValueError, r"both are \[positions, heads, head_dim\]"),
        (lambda: apply_mrope(*PLAIN._replace(positions=PLAIN.positions[:2])), ValueError, "for 7 tokens: each has three"),
        (lambda: apply_mrope(*PLAIN._replace(table=PLAIN.table[:, :15])), ValueError, "an even part of 16 numbers"),
        (lambda: apply_mrope(*PLAIN._replace(sections=(4, 2, 1))), ValueError, "rotate 7 frequencies, and the table has 8"),
        (
            lambda: apply_mrope(*PLAIN._replace(table=PLAIN.table[:6])),
            ValueError,
            "from 0 to 6 are looked up in a table from 0",
        ),
        (lambda: dissimilarity(rough(1, 4, 3).double(), (2, 1, 2)), TypeError, "embeddings are torch.float64"),
        (lambda: dissimilarity(rough(1, 5, 3), (2, 1, 2)), ValueError, r"a grid \(2, 1, 2\) have 4 rows: \[5, 3\]"),
        (lambda: dissimilarity(rough(1, 0, 3), (0, 1, 2)), ValueError, "at least 1 frame of 1 token"),
    ],
)
def test_what_cannot_be_right_is_explained(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_chunk_of_media_alone_needs_no_table() -> None:
    case = merge([(0, 4)], Chunk(1, 3))._replace(table=numbers(0, 3))
    assert torch.equal(fused_merge(*case).value[0], case.rows)


def test_the_share_of_a_copy_is_measured_where_there_is_no_gpu_too() -> None:
    measured = list(bandwidth.shares(2**20, torch.device("cpu"), rounds=1))
    names = {name for name, *_ in measured}
    assert names == {
        "word_hash", "content_digest", "placeholder_mask", "span_mask", "scatter_rows", "fused_merge", "apply_mrope",
        "dissimilarity",
    }  # fmt: skip
    assert all(path is Path.CPU and speed > 0 and share > 0 for _, path, speed, share in measured)
