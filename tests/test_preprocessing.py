"""What the reference promises beyond the requirements: event loops, threads, memory, and errors that say what is wrong."""

import asyncio
import gc
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from reference.items import Format, Item, Modality
from reference.preprocessing.background import Preprocessor, QueueFull, preprocessing_key

LIMIT_S = 20.0


def picture(value: int = 0) -> Item:
    return Item(modality=Modality.IMAGE, feature=np.full((2, 2, 3), value, np.uint8), format=Format.RAW)


def first_pixel(item: Item, processor: str, options: Mapping[str, Any]) -> dict[str, int]:
    return {"pixel": int(item.feature.flat[0])}


@pytest.fixture
def gate() -> Iterator[Event]:
    """Holds all work until it is set."""
    event = Event()
    yield event
    event.set()


def held_by(gate: Event) -> Any:
    def work(item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        assert gate.wait(LIMIT_S)
        return first_pixel(item, processor, options)

    return work


def test_a_ticket_is_awaited_in_an_event_loop() -> None:
    async def main() -> Any:
        return await asyncio.wait_for(asyncio.wrap_future(preprocessor.submit(picture(7), "A", {})), LIMIT_S)

    preprocessor = Preprocessor(first_pixel, 1, 1, 1024)
    assert asyncio.run(main()) == {"pixel": 7}
    preprocessor.close()


def test_a_cancelled_task_cancels_its_ticket_and_no_other(gate: Event) -> None:
    async def main() -> Any:
        tickets = [preprocessor.submit(picture(7), "A", {}) for _ in range(2)]
        tasks = [asyncio.ensure_future(asyncio.wrap_future(ticket)) for ticket in tickets]
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await asyncio.sleep(0)  # a loop passes a cancel on when it comes round
        gate.set()
        return tickets[0].cancelled(), await asyncio.wait_for(tasks[1], LIMIT_S)

    preprocessor = Preprocessor(held_by(gate), 1, 1, 1024)
    assert asyncio.run(main()) == (True, {"pixel": 7})
    preprocessor.close()


def test_an_event_loop_survives_a_stop_iteration() -> None:
    def work(item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        return next(iter([]))

    async def main() -> None:
        await asyncio.wait_for(asyncio.wrap_future(preprocessor.submit(picture(), "A", {})), LIMIT_S)

    preprocessor = Preprocessor(work, 1, 1, 1024)
    with pytest.raises(RuntimeError, match="the work raised StopIteration"):
        asyncio.run(main())
    preprocessor.close()


def test_many_threads_ask_cancel_and_clear_at_once() -> None:
    def ask(seed: int) -> None:
        for step in range(100):
            value = (seed * 7 + step) % 11
            try:
                ticket = preprocessor.submit(picture(value), "A", {})
            except QueueFull:
                continue
            if step % 5 == seed % 5:
                preprocessor.cancel(ticket)
            if step % 17 == seed:
                preprocessor.clear()
            try:
                assert preprocessor.result(ticket, LIMIT_S) == {"pixel": value}
            except CancelledError:
                assert step % 5 == seed % 5

    preprocessor = Preprocessor(first_pixel, 3, 2, 1024)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(6)))
    preprocessor.close()
    assert not preprocessor._runs
    assert not preprocessor._shared
    assert preprocessor.used_bytes() == 0


def test_a_view_is_kept_without_what_it_is_a_view_of() -> None:
    preprocessor = Preprocessor(lambda item, processor, options: torch.zeros(1000, 10)[5:6], 1, 1, 1 << 20)
    result = preprocessor.result(preprocessor.submit(picture(), "A", {}), LIMIT_S)
    assert result.untyped_storage().nbytes() == 40
    assert preprocessor.used_bytes() == 40
    preprocessor.close()


def test_a_failure_does_not_keep_the_picture_that_failed() -> None:
    class Pixels:
        pass

    seen: list[weakref.ref[Pixels]] = []

    def work(item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        seen.append(weakref.ref(pixels := Pixels()))
        del pixels
        raise ValueError("cannot be decoded")

    preprocessor = Preprocessor(work, 1, 1, 1024)
    ticket = preprocessor.submit(picture(), "A", {})
    error = ticket.exception(LIMIT_S)
    assert error is not None
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_frame.f_code.co_name == "work"
    preprocessor.close()
    gc.collect()
    assert seen[0]() is None


def test_close_cancels_what_has_not_begun_while_something_runs(gate: Event) -> None:
    preprocessor = Preprocessor(held_by(gate), 1, 1, 1024)
    running = preprocessor.submit(picture(1), "A", {})
    waiting = preprocessor.submit(picture(2), "A", {})
    closing = Thread(target=preprocessor.close)
    closing.start()
    with pytest.raises(CancelledError):
        waiting.result(LIMIT_S)
    gate.set()
    closing.join(LIMIT_S)
    assert running.result(0) == {"pixel": 1}
    preprocessor.close()
    with pytest.raises(RuntimeError, match="this preprocessor is closed"):
        preprocessor.submit(picture(1), "A", {})


def test_a_full_queue_is_named(gate: Event) -> None:
    preprocessor = Preprocessor(held_by(gate), 1, 1, 1024)
    for value in range(2):
        preprocessor.submit(picture(value), "A", {})
    with pytest.raises(QueueFull, match="2 media are being preprocessed or wait for it, which is the limit"):
        preprocessor.submit(picture(2), "A", {})
    gate.set()
    preprocessor.close()


def test_nothing_within_the_limit_is_a_timeout(gate: Event) -> None:
    preprocessor = Preprocessor(held_by(gate), 1, 1, 1024)
    with pytest.raises(TimeoutError):
        preprocessor.result(preprocessor.submit(picture(), "A", {}), 0)
    gate.set()
    preprocessor.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((first_pixel, 0, 1, 1), "at least 1 worker, 0 places and 0 bytes are needed, not 0, 1 and 1"),
        ((first_pixel, 1, -1, 1), "not 1, -1 and 1"),
        ((first_pixel, 1, 1, -1), "not 1, 1 and -1"),
    ],
)
def test_bounds_are_named(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Preprocessor(*arguments)


@pytest.mark.parametrize("made", [object(), {"a": [object()]}, np.array([None]), torch.eye(2).to_sparse(), {1, 2}])
def test_what_is_no_plain_data_fails_its_waiters(made: Any) -> None:
    preprocessor = Preprocessor(lambda item, processor, options: made, 1, 1, 1024)
    with pytest.raises(TypeError, match="is no plain data"):
        preprocessor.result(preprocessor.submit(picture(), "A", {}), LIMIT_S)
    preprocessor.close()


def test_data_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    preprocessor = Preprocessor(first_pixel, 1, 1, 1024)
    with pytest.raises(ValueError, match="nested too deep, or contains itself"):
        preprocessor.submit(picture(), "A", {Modality.IMAGE: {"size": endless}})
    preprocessor.close()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            Item(modality=Modality.IMAGE, feature=np.zeros(3)),
            "only a raw medium is preprocessed, and this image is processor_output",
        ),
        (Item(modality=Modality.IMAGE, embedding=torch.zeros(2, 4)), "and this image is precomputed_embedding"),
        (Item(modality=Modality.IMAGE, format=Format.RAW), "carries no content"),
    ],
)
def test_only_raw_media_have_a_key(item: Item, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preprocessing_key(item, "A", {})


@pytest.mark.parametrize(
    ("processor", "options", "message"),
    [
        (7, {}, "a processor is named by a string, not by int"),
        ("A", {"image": {}}, "options are mappings by modality, and 'image' has dict"),
        ("A", {Modality.IMAGE: [1]}, "options are mappings by modality, and .* has list"),
        ("A", {Modality.IMAGE: {"a": object()}}, r"fields\['a'\] is object"),
    ],
)
def test_a_key_is_made_of_what_has_an_encoding(processor: Any, options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        preprocessing_key(picture(), processor, options)


def test_pictures_and_their_results_are_copied() -> None:
    drawn = Image.new("RGB", (2, 2), (9, 9, 9))
    item = Item(modality=Modality.IMAGE, feature=drawn, format=Format.RAW)
    preprocessor = Preprocessor(lambda item, processor, options: item.feature, 1, 1, 1024)
    first, second = (preprocessor.result(preprocessor.submit(item, "A", {}), LIMIT_S) for _ in range(2))
    assert first is not second is not drawn
    assert first.tobytes() == second.tobytes() == drawn.tobytes()
    assert preprocessor.used_bytes() == 12
    preprocessor.close()
