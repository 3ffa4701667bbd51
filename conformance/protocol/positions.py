"""M-RoPE positions: where each position of a prompt lies in time, height and width."""

from typing import Protocol


class Positions(Protocol):
    """M-RoPE positions: where each position of a prompt lies in time, height and width."""
