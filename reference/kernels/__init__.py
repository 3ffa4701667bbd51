"""Kernels: the operations of other stages that engines move onto a GPU, and the same operations on a CPU.

1. Each operation is one function. Where its tensors lie decides how it is computed: on a CPU by numpy, torch and the
   `blake3` package, on a GPU by a Triton kernel of `device`. Callers never choose; `Computed.path` says what was used.
2. Both ways give the same bits. Most kernels add and multiply integers only, and floating point numbers are moved and never
   computed with, so that any dtype will do: bfloat16, float8, bool, complex. Where they are computed with, each rounding
   and the order of a sum are written down, and no function is used whose bits are a device's own.
3. A kernel runs where its tensor lies, and whatever it needs is made there: never on the current or the default device,
   which may be another.
4. Input that cannot be right is refused before anything is launched. A kernel has no way to refuse; one that is given too
   few rows writes elsewhere, or takes the engine down.
5. Offsets have 64 bits. A table of 200,000 words of 16,384 numbers has more than 2**31 elements.
6. Triton is imported where a tensor lies on a GPU, and nowhere else.

`hashing` holds what is made of bytes, `masks` what is made of ids and spans, `rows` what enters the language model,
`rotation` what its attention turns by positions, `frames` how tokens of a video are compared.
"""
