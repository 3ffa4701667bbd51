"""What is obviously right about sentinels."""

from hashlib import sha256


def expected(seed: bytes) -> tuple[int, ...]:
    """Four big-endian words of one digest, each cut to 62 bits and lifted above the vocabulary."""
    digits = sha256(b"sglang-mm-wide-pad-v1" + seed).hexdigest()
    return tuple(1_000_000 + int(digits[first : first + 16], 16) % 2**62 for first in (0, 16, 32, 48))
