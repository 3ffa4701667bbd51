"""What rules about the prefix cache have in common."""

from collections.abc import Sequence
from typing import Any

from conformance.compare import equal
from conformance.engine import Engine
from conformance.oracles.prefix_cache import ListCache, Script, play, whole
from conformance.suite.prefix_cache_cases import Meeting, Pressure
from reference.items import Request


def cache_with(*methods: str) -> tuple[str, ...]:
    """The engine methods that a rule needs: a cache that has these."""
    return ("open_prefix_cache", *(f"open_prefix_cache.{method}" for method in methods))


def caches(engine: Engine, page: int) -> tuple[Any, ListCache]:
    """The engine's cache and the right one, both empty, in pages of this size or of the only one that the engine has."""
    page = engine.traits.prefix_page or page
    return engine.open_prefix_cache(page), ListCache(page, engine.traits.prefix_items)


def meet(cache: Any, case: Meeting) -> int:
    """How much of the request is matched once the others are kept."""
    for request in case.kept:
        cache.insert(*whole(request))
    return int(cache.match(*whole(case.asked)))


def follows(engine: Engine, case: Script) -> None:
    """Every answer of the engine's cache is the right one."""
    observed, expected = (play(cache, case.prompts, case.steps) for cache in caches(engine, case.page))
    equal(observed, expected, "the answers", where=case.where)


def grown(cache: Any, request: Request, limit: int) -> int:
    """How much of a request matches once its first `limit` positions are kept."""
    cache.insert(*whole(request, limit=limit))
    return int(cache.match(*whole(request)))


def under_pressure(cache: Any, case: Pressure) -> None:
    """Keep the prompts of a case, and lock the one to be locked."""
    for request in case.kept:
        cache.insert(*whole(request))
    for request in case.kept[: 0 if case.locked is None else case.locked + 1][-1:]:
        cache.lock(*whole(request))


def matches(cache: Any, requests: Sequence[Request]) -> list[int]:
    """How much of each request matches."""
    return [cache.match(*whole(request)) for request in requests]
