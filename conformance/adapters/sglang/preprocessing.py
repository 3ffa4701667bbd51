"""SGLang's preprocessing in the background: its cache and its workers, on an event loop as its tokenizer manager has one."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.processors import preprocessing_key
from conformance.protocol.preprocessing import Options, Work
from reference.items import Item

LINGER_S = 0.2
"""How long, at most, the event loop still delivers what has been made by the time when everything was shut down."""


class Preprocessor:
    """`MultimodalPreprocessCache.get_or_compute`, whose work `MultimodalProcessorExecutor` runs. No number of places is known.

    A worker has a copy of the checkpoint's processor to itself; the work of the suite needs none.
    """

    def __init__(self, work: Work, workers: int, capacity_bytes: int) -> None:
        cache = cpu.module("sglang.srt.multimodal.cache.preprocess_cache").MultimodalPreprocessCache
        executor = cpu.module("sglang.srt.multimodal.processors.executor").MultimodalProcessorExecutor
        self._work = work
        self._cache, self._executor = cache(capacity_bytes), executor(lambda: None, workers)
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._thread = Thread(target=self._live, daemon=True)
        self._thread.start()

    def submit(self, item: Item, processor: str, options: Options) -> "Future[Any]":
        """`get_or_compute`, under the key of an artifact. Its work is handed to the workers before anything else is asked."""
        key = preprocessing_key(item, processor, options)
        answer = self._answer(key, item, processor, options.get(item.modality, {}))
        ticket = asyncio.run_coroutine_threadsafe(answer, self._loop)
        wait([asyncio.run_coroutine_threadsafe(self._turn(), self._loop)], timeout=1)
        return ticket

    def result(self, ticket: "Future[Any]", limit_s: float) -> Any:
        """The value of a `CacheLookup`."""
        return ticket.result(limit_s)

    def cancel(self, ticket: "Future[Any]") -> bool:
        """The cancellation of the task that awaits the value."""
        return ticket.cancel()

    def clear(self) -> None:
        """`clear`, on the event loop, behind what was submitted before."""
        asyncio.run_coroutine_threadsafe(self._clear(), self._loop).result()

    def used_bytes(self) -> int:
        """`current_size_bytes`."""
        return int(self._cache.current_size_bytes)

    def close(self) -> None:
        """The steps of `BaseMultimodalProcessor.shutdown`, and the end of an event loop: what hangs is cancelled."""
        self._cache.clear()
        self._executor.shutdown()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _turn(self) -> None:
        for _ in range(4):
            await asyncio.sleep(0)

    async def _clear(self) -> None:
        self._cache.clear()

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._ended.wait()
        if waiting := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(waiting, timeout=LINGER_S)

    async def _answer(self, key: bytes, item: Item, processor: str, options: Mapping[str, Any]) -> Any:
        async def compute() -> Any:
            return await self._executor.run(lambda processor: self._work(*asked))

        asked = item, processor, options
        return (await self._cache.get_or_compute(key, compute)).value
