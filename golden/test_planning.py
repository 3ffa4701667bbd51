"""Planning, measured on transformers: thousands of sizes of each family."""

from collections.abc import Sequence
from typing import Any

from conformance.suite.planning_checks import Table
from conformance.world.families import Family
from golden.vectors import vectors
from reference.items import Size


def table(given: dict[str, Any], media: Sequence[tuple[Any, ...]], expected: list[int]) -> Table:
    return Table(Family(given["family"], given["settings"]), media, lambda: expected)


def pictures(given: dict[str, Any], expected: list[int]) -> Table:
    """Sizes are a height and a width."""
    return table(given, [(Size(*size),) for size in given["sizes"]], expected)


def videos(given: dict[str, Any], expected: list[int]) -> Table:
    """Videos are a number of frames, a height and a width."""
    return table(given, [(frames, Size(height, width)) for frames, height, width in given["videos"]], expected)


@vectors("PLANNING-01")
def test_pictures_of_qwen(given: dict[str, Any], expected: list[int]) -> Table:
    return pictures(given, expected)


@vectors("PLANNING-02")
def test_pictures_on_a_canvas(given: dict[str, Any], expected: list[int]) -> Table:
    return pictures(given, expected)


@vectors("PLANNING-03")
def test_pictures_in_tiles(given: dict[str, Any], expected: list[int]) -> Table:
    return pictures(given, expected)


@vectors("PLANNING-04")
def test_pictures_in_patches(given: dict[str, Any], expected: list[int]) -> Table:
    return pictures(given, expected)


@vectors("PLANNING-05")
def test_pictures_of_a_fixed_number_of_tokens(given: dict[str, Any], expected: list[int]) -> Table:
    return pictures(given, expected)


@vectors("PLANNING-11")
def test_videos(given: dict[str, Any], expected: list[int]) -> Table:
    return videos(given, expected)


@vectors("PLANNING-12")
def test_videos_with_a_budget(given: dict[str, Any], expected: list[int]) -> Table:
    return videos(given, expected)


@vectors("PLANNING-15")
def test_recordings(given: dict[str, Any], expected: list[int]) -> Table:
    """Recordings are a number of samples and their rate."""
    return table(given, [(samples, rate) for samples, rate in given["recordings"]], expected)
