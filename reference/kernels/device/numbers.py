"""Numbers of half precision, widened and rounded to the bit.

For bfloat16 in integers: Triton's interpreter cuts off instead of rounding, and loses what is subnormal.
"""

import triton
import triton.language as tl


@triton.jit
def widened(value):
    """The same numbers in 32 bits."""
    if value.dtype == tl.bfloat16:
        return (value.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
    return value.to(tl.float32)


@triton.jit
def rounded(value, KIND: tl.constexpr):
    """Numbers of 32 bits as those of another type that are nearest, of two as the even one; still in 32 bits."""
    if tl.bfloat16 == KIND:
        bits = value.to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return tl.where(value == value, bits.to(tl.float32, bitcast=True), value)
    return value.to(KIND).to(tl.float32)


@triton.jit
def narrowed(value, KIND: tl.constexpr):
    """What was rounded, in its own type."""
    if tl.bfloat16 == KIND:
        return (value.to(tl.uint32, bitcast=True) >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return value.to(KIND)
