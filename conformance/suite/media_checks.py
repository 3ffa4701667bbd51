"""What several rules about media ask."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.compare import equal, holds
from conformance.witness import EngineRaised


def lies_between(observed: NDArray[np.uint8], lowest: NDArray[np.uint8], highest: NDArray[np.uint8], what: str) -> None:
    """Each value is one of the two that rounding may give."""
    equal(observed.shape, lowest.shape, f"the shape of {what}", where="axis {}".format)
    equal(observed, np.clip(observed, lowest, highest), what, where="row {}".format)


def is_told_as_the_clients_fault(call: Callable[[], Any], *secrets: str) -> None:
    """Where the engine refuses, it does so with a ValueError whose text has no memory address and none of the secrets."""
    try:
        call()
    except EngineRaised as raised:
        kind, text = type(raised.error), str(raised.error)
        holds(issubclass(kind, ValueError), f"the refusal is a {kind.__name__}, which is no ValueError")
        holds(re.search(r"0x[0-9a-fA-F]{6}", text) is None, "the refusal shows a memory address")
        holds(not any(secret in text for secret in secrets), "the refusal shows what lies outside the allowed folder")
