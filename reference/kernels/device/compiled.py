"""Every kernel compiled for every GPU that is promised, without any: `python -m reference.kernels.device.compiled`.

Prints a table of registers, shared memory and spilled bytes (of registers on AMD), and fails where anything is spilled or
does not compile. Registers of NVIDIA are those that ptxas reports, of AMD those that the assembler notes (vector registers).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from reference.kernels.device import blake3, frames, masks, rotation, rows, word_hash
from reference.kernels.hashing import TILE_WORDS

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90a": GPUTarget("cuda", 90, 32),
    "sm_100a": GPUTarget("cuda", 100, 32),
    "sm_120a": GPUTarget("cuda", 120, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
    "gfx950": GPUTarget("hip", "gfx950", 64),
}


class Variant(NamedTuple):
    """A kernel as it is launched: the types of its arguments, its constants, and how many warps run it.

    even: the arguments that are divisible by 16, which Triton tells apart, beside all addresses; None: no address is, either.
    options: what else its launcher tells the compiler.
    """

    name: str
    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    warps: int = 4
    even: tuple[str, ...] | None = ()
    options: Mapping[str, Any] = MappingProxyType({})


class Compiled(NamedTuple):
    """What became of a variant for a GPU."""

    variant: str
    target: str
    registers: int
    spilled: int
    shared_bytes: int


def variants() -> Iterator[Variant]:
    """Each kernel in each form that its launcher gives it: by the bytes of an element and by the type of ids."""
    number, pointer = "i64", "*i64"
    block, lanes = {"BLOCK": word_hash.BLOCK}, {"BLOCK": blake3.LANES["BLOCK"]}
    warps = blake3.LANES["num_warps"]
    data = {"octets": "*u8", "words": "*i32"}
    tile = {"TILE": TILE_WORDS, **block, **word_hash.PLACES}
    yield Variant("hash_tiles", word_hash.hash_tiles, {**data, "tiles": pointer, "n_bytes": number}, tile)
    chunks = {**data, "values": "*i32", "n_bytes": number, "n_chunks": number, "n_blocks": "i32"}
    yield Variant("digest_chunks", blake3.digest_chunks, chunks, lanes, warps)
    yield Variant("finish_hash", word_hash.finish_hash, {"tiles": pointer, "total": pointer, "n_tiles": "i32"}, block)
    parents = {"below": "*i32", "above": "*i32", "n_below": number}
    yield Variant("join_parents", blake3.join_parents, parents, lanes, warps)
    for ids in ("i32", "i64"):
        sentinels = {"ids": f"*{ids}", "sentinels": pointer, "out": "*i1", "n": number, "n_sorted": "i32", "steps": "i32"}
        yield Variant(f"find_sentinels {ids}", masks.find_sentinels, sentinels, {"BLOCK": masks.BLOCK})
    spans = {"firsts": pointer, "stops": pointer, "out": "*i1", "n": number, "n_spans": "i32", "steps": "i32"}
    yield Variant("find_spans", masks.find_spans, spans, {"BLOCK": masks.BLOCK})
    for moved in ("i8", "i16", "i32", "i64"):
        yield from _moving(moved)
    for kind in ("fp32", "bf16", "fp16"):
        yield from _computing(kind)


def _moving(moved: str) -> Iterator[Variant]:
    """Rows of a common model, rows that begin anywhere and have any width, and rows of one column."""
    moving = {"rows": f"*{moved}", "out": f"*{moved}"}
    scatter = {"destination": f"*{moved}", "mask": "*i1", "ranks": "*i64", **moving}
    strides = {"n": "i64", "hidden": "i32", "destination_stride": "i64", "rows_stride": "i64"}
    merge = {"ids": "*i64", "firsts": "*i64", "stops": "*i64", "ranks": "*i64", **moving, "table": f"*{moved}"}
    counts = {"n": "i64", "n_spans": "i32", "steps": "i32", "vocabulary": "i32", "hidden": "i32"}
    types = {**merge, **counts, "table_stride": "i64", "rows_stride": "i64"}
    for plain in (
        Variant(f"scatter_tiles {moved}", rows.scatter_tiles, {**scatter, **strides}, rows.TILE),
        Variant(f"merge_tiles {moved}", rows.merge_tiles, types, rows.TILE),
    ):
        widths = tuple(name for name in plain.types if name == "hidden" or name.endswith("_stride"))
        yield plain._replace(even=widths)
        yield plain._replace(name=f"{plain.name} anywhere", even=None)
        yield _of_ones(plain._replace(name=f"{plain.name} of one column"), widths)


def _computing(kind: str) -> Iterator[Variant]:
    """Heads of a common model with a table of 32 bits, and rows of a common encoder; both also anywhere, and of one number."""
    tensors = {"heads": f"*{kind}", "positions": "*i64", "axes": "*i64", "table": "*fp32", "out": f"*{kind}"}
    sizes = {"n": "i64", "count": "i32", "width": "i32", "half": "i32"}
    strides = {"token_stride": "i64", "head_stride": "i64", "table_stride": "i64"}
    compared = {"rows": f"*{kind}", "out": "*fp64", "n": "i64", "frame": "i64", "hidden": "i32", "stride": "i64"}
    pairs = {"halves": {"NEIGHBOURS": False}, "neighbours": {"NEIGHBOURS": True}}
    for plain in (
        *(
            Variant(f"rotate_tiles {kind} {pair}", rotation.rotate_tiles, tensors | sizes | strides, rotation.TILE | constants)
            for pair, constants in pairs.items()
        ),
        Variant(f"compare_rows {kind}", frames.compare_rows, compared, frames.SIZES),
    ):
        common = plain._replace(options=rotation.EXACT if plain.kernel is rotation.rotate_tiles else {})
        widths = (*strides, "width", "half") if plain.kernel is rotation.rotate_tiles else ("hidden", "stride")
        yield common._replace(even=widths)
        yield common._replace(name=f"{plain.name} anywhere", even=None)
        ones = ("count", "half") if plain.kernel is rotation.rotate_tiles else ("hidden", "stride")
        yield _of_ones(common._replace(name=f"{plain.name} of one", even=None), ones)


def _of_ones(variant: Variant, ones: Sequence[str]) -> Variant:
    """The form of a kernel for which some numbers are 1: Triton makes constants of them."""
    types = {name: kind for name, kind in variant.types.items() if name not in ones}
    return variant._replace(types=types, constants={**variant.constants, **dict.fromkeys(ones, 1)})


def compiled(variant: Variant, target: str) -> Compiled:
    """Compile a variant. Raises what the compiler raises."""
    order = variant.kernel.arg_names
    types = {name: variant.types.get(name, "constexpr") for name in order}
    even = [] if variant.even is None else [name for name in order if types[name].startswith("*") or name in variant.even]
    attributes = {(order.index(name),): [["tt.divisibility", 16]] for name in even}
    source = ASTSource(fn=variant.kernel, signature=types, constexprs={**variant.constants}, attrs=attributes)
    made = triton.compile(source, target=TARGETS[target], options={"num_warps": variant.warps, **variant.options})
    read = _ptxas if TARGETS[target].backend == "cuda" else _assembled
    return Compiled(variant.name, target, *read(made.asm, TARGETS[target]), made.metadata.shared)


def _ptxas(assembly: Mapping[str, Any], target: GPUTarget) -> tuple[int, int]:
    arch = re.search(r"\.target\s+(sm_\w+)", assembly["ptx"]).group(1)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx")
        file.write_text(assembly["ptx"], encoding="utf-8")
        command = [get_ptxas(target.arch).path, "-v", f"--gpu-name={arch}", str(file), "-o", str(file.with_suffix(".cubin"))]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return _number(r"Used (\d+) registers", said), _number(r"(\d+) bytes spill stores", said)


def _assembled(assembly: Mapping[str, Any], target: GPUTarget) -> tuple[int, int]:
    text = assembly["amdgcn"]
    spilled = _number(r"\.vgpr_spill_count:\s+(\d+)", text) + _number(r"\.sgpr_spill_count:\s+(\d+)", text)
    return _number(r"\.vgpr_count:\s+(\d+)", text), spilled


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the compiler's report has no {pattern!r}: {text[-300:]}")
    return int(found.group(1))


def main() -> int:
    """Print the table; 1 where anything is spilled."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    chosen = parser.parse_args().target or list(TARGETS)
    wide = max(len(variant.name) for variant in variants())
    print(f"{'registers (spilled)':{wide}}", *(f"{target:>9}" for target in chosen))
    spilled = 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        for variant in variants():
            row = [compiled(variant, target) for target in chosen]
            spilled += sum(one.spilled > 0 for one in row)
            print(f"{variant.name:{wide}}", *(f"{f'{one.registers} ({one.spilled})':>9}" for one in row), flush=True)
    print(f"{spilled} spilled" if spilled else "nothing is spilled")
    return int(spilled > 0)


if __name__ == "__main__":
    sys.exit(main())
