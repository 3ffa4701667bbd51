"""What the prefix cache costs: prompts of 65,536 positions with 64 pictures of 256 rows, in pages of 16."""

from conformance.engine import Engine
from conformance.oracles.prefix_cache import NOBODY
from conformance.world.doubles import image, request
from perf.sized import Job, sized
from reference.items import Request

LENGTH, PICTURES, ROWS, PAGE = 65_536, 64, 256, 16
PARTING = 32_500
"""A position of text in the middle."""


def prompt(number: int) -> Request:
    """A prompt that shares its first half with all others, and differs from them in one position of text."""
    made = request(f"prompt {number}", LENGTH, *(image(n, (n * 1000, n * 1000 + ROWS - 1)) for n in range(PICTURES)))
    made.input_ids[PARTING] = number
    return made


@sized("open_prefix_cache", "open_prefix_cache.insert", "open_prefix_cache.match")
def test_match_a_long_prompt(engine: Engine) -> Job:
    """Of 8 prompts that part in the middle one is met again."""
    cache, prompts = engine.open_prefix_cache(engine.traits.prefix_page or PAGE), [prompt(number) for number in range(8)]
    for one in prompts:
        cache.insert(one, NOBODY, LENGTH)
    return lambda: cache.match(prompts[3], NOBODY, LENGTH - 1)


@sized("open_prefix_cache", "open_prefix_cache.insert", "open_prefix_cache.evict")
def test_insert_and_evict_a_long_prompt(engine: Engine) -> Job:
    """A prompt comes into a cache that holds another, and goes."""
    cache, (first, second) = engine.open_prefix_cache(engine.traits.prefix_page or PAGE), (prompt(0), prompt(1))
    cache.insert(first, NOBODY, LENGTH)
    return lambda: (cache.insert(second, NOBODY, LENGTH), cache.evict(LENGTH // 2))


@sized("open_prefix_cache", "open_prefix_cache.insert", "open_prefix_cache.lock", "open_prefix_cache.unlock")
def test_lock_and_unlock_a_long_prompt(engine: Engine) -> Job:
    """The locks of one request."""
    cache, one = engine.open_prefix_cache(engine.traits.prefix_page or PAGE), prompt(0)
    cache.insert(one, NOBODY, LENGTH)
    return lambda: cache.unlock(cache.lock(one, NOBODY, LENGTH))


@sized("page_keys")
def test_keys_of_a_long_prompt(engine: Engine) -> Job:
    """4,096 keys."""
    one = prompt(0)
    return lambda: engine.page_keys(one, NOBODY, engine.traits.prefix_page or PAGE)
