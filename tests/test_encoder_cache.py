"""What the reference promises about its cache beyond the requirements: threads, graphs, and errors that say what is wrong."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from reference.encoder_cache import EncoderCache

KEY = bytes(32)


def test_an_entry_does_not_keep_the_graph_that_computed_it() -> None:
    cache = EncoderCache(1024)
    cache.put(KEY, torch.ones(2, 4, requires_grad=True) * 2)
    hit = cache.get(KEY, 2)
    assert hit is not None
    assert hit.grad_fn is None
    assert not hit.requires_grad


def test_a_tensor_that_has_its_storage_to_itself_is_not_copied() -> None:
    cache, rows = EncoderCache(1024), torch.ones(2, 4)
    cache.put(KEY, rows)
    hit = cache.get(KEY, 2)
    assert hit is not None
    assert hit.data_ptr() == rows.data_ptr()


def test_the_pins_of_a_refused_value_are_gone() -> None:
    cache = EncoderCache(64)
    cache.put(KEY, torch.ones(2, 4))
    cache.pin(KEY)
    assert not cache.put(KEY, torch.ones(5, 4))
    with pytest.raises(KeyError, match="no pinned entry 0000"):
        cache.unpin(KEY)


def test_many_threads_leave_the_books_right() -> None:
    cache = EncoderCache(10 * 16)

    def work(seed: int) -> None:
        for step in range(200):
            key, rows = bytes([(seed + step) % 7] * 32), 1 + (seed * step) % 4
            cache.put(key, torch.full((rows, 4), float(rows)))
            hit = cache.get(key, rows)
            assert hit is None or hit.shape == (rows, 4)
            assert 0 <= cache.used_bytes() <= 10 * 16

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert cache.used_bytes() == sum(entry.embedding.nbytes for entry in cache._entries.values())


@pytest.mark.parametrize(("capacity", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_a_capacity_is_a_number_of_bytes(capacity: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        EncoderCache(capacity)


def test_an_embedding_of_another_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"\[token_count, hidden\], not \[1, 2, 4\]"):
        EncoderCache(1024).put(KEY, torch.ones(1, 2, 4))
