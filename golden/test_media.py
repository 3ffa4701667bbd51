"""Recordings, decoded by libsndfile."""

import numpy as np

from conformance.cases import Exact
from golden.vectors import vectors


def decoded(given: str, expected: str) -> Exact:
    return Exact(bytes.fromhex(given), np.array(np.frombuffer(bytes.fromhex(expected), dtype="<f4")))


@vectors("MEDIA-53")
def test_samples_of_one_channel(given: str, expected: str) -> Exact:
    return decoded(given, expected)


@vectors("MEDIA-54")
def test_the_mean_of_two_channels(given: str, expected: str) -> Exact:
    return decoded(given, expected)


@vectors("MEDIA-55")
def test_the_mean_of_many_channels(given: str, expected: str) -> Exact:
    return decoded(given, expected)
