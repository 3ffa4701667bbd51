"""Workloads: requests as real traffic brings them, each declared once and taken through every stage that it touches.

    one photo                  of 1,296 positions
    a document of 20 pages     of 1,364 positions each
    a batch of 64 photos       in as many requests, of which 16 differ
    an hour of video           1,800 pairs of frames of 64 positions, with the time before each
    a prompt of 256k           200 photos of 1,024 positions, and text
    a prompt of a million      10,000 pictures
    a document chunked at 2k   the document, all its steps; of the others one step in the middle is asked, of 8,192 positions

What grows with traffic is an argument, and `perf.growth` doubles it. Features are as large as those of Qwen2-VL, but together
16 MiB at most, and rows are 64 wide. The language model reads only what its attention on a CPU allows: the pipeline stage has
one photo, a document of 20 pictures and 64 pictures, small ones.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from conformance.oracles.prefix_cache import NOBODY
from conformance.protocol.scheduling import Budget
from conformance.world.checkpoint import tiny_qwen2_vl
from conformance.world.doubles import identity
from conformance.world.mrope import QWEN2_VL, QWEN3_VL, Script, image, video, write
from conformance.world.pictures import pictures, render
from perf import million
from perf.counters import tallied
from perf.sized import Job
from reference.items import Chunk, Item, Modality, MropeLayout, Request

STEP, SHORT_STEP = 8192, 2048
PATCH_BYTES, MOST_BYTES = 1176, 16 << 20
HIDDEN, VOCABULARY, PAGE, RATE = 64, 1024, 16, 0.7


class Workload(NamedTuple):
    """Requests and how they are computed.

    step: positions a step. in_full: whether all steps are asked, and not one in the middle.
    """

    requests: tuple[Request, ...]
    layout: MropeLayout
    step: int = STEP
    in_full: bool = False

    @property
    def items(self) -> list[Item]:
        return [item for request in self.requests for item in request.items]

    @property
    def batches(self) -> list[list[tuple[Request, Chunk]]]:
        """The steps that are asked: for each request its chunk."""
        return [list(zip(self.requests, chunks, strict=True)) for chunks in zip(*map(self._chunks, self.requests), strict=True)]

    def _chunks(self, request: Request) -> list[Chunk]:
        length = len(request.input_ids)
        firsts = range(0, length, self.step)
        asked = firsts if self.in_full else firsts[len(firsts) // 2 :][:1]
        return [Chunk(first, min(self.step, length - first)) for first in asked]


class Step(NamedTuple):
    """What a stage is asked: the engine methods, and the call for a workload."""

    needs: tuple[str, ...]
    ask: Callable[[Any, Workload], Job]


def request(script: Script, contents: Sequence[int] | None = None) -> Request:
    """The request of a script. contents: a number for each item that says what is on it; all differ unless given."""
    numbers = range(len(script.items)) if contents is None else contents
    most = MOST_BYTES // len(script.items)
    items = []
    for item, number in zip(script.items, numbers, strict=True):
        feature = torch.full((min(most, item.token_count * PATCH_BYTES),), number % 251, dtype=torch.uint8)
        known = identity(item.modality, number)
        items.append(Item(modality=item.modality, spans=item.spans, fields=item.fields, feature=feature, identity=known))
    return Request(id=f"of {len(items)} items", input_ids=script.input_ids, items=tuple(items))


def photo() -> Workload:
    return Workload((request(write(QWEN2_VL, 20, image(36, 36), 30)),), QWEN2_VL)


def document(pages: int = 20) -> Workload:
    return Workload((request(write(QWEN2_VL, *[part for _ in range(pages) for part in (20, image(44, 31))], 30)),), QWEN2_VL)


def chunked() -> Workload:
    return document()._replace(step=SHORT_STEP, in_full=True)


def batch(photos: int = 64) -> Workload:
    script = write(QWEN2_VL, 20, image(18, 18), 30)
    return Workload(tuple(request(script, [number % (photos // 4)]) for number in range(photos)), QWEN2_VL)


def film(frames: int = 1800) -> Workload:
    return Workload((request(write(QWEN3_VL, 20, video(frames, 8, 8), 30)),), QWEN3_VL)


def photos(number: int = 200) -> Workload:
    return Workload((request(write(QWEN2_VL, *[part for _ in range(number) for part in (284, image(32, 32))])),), QWEN2_VL)


def pictures_and_text(length: int = million.POSITIONS) -> Workload:
    return Workload((request(Script(*million.prompt(length), QWEN2_VL)),), QWEN2_VL)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "one photo": cache(photo),
    "a document of 20 pages": cache(document),
    "a batch of 64 photos": cache(batch),
    "an hour of video": cache(film),
    "a prompt of 256k": cache(photos),
    "a prompt of a million": cache(pictures_and_text),
    "a document chunked at 2k": cache(chunked),
}


def identifying(engine: Any, one: Workload) -> Job:
    items = [Item(modality=item.modality, feature=item.feature, fields=item.fields) for item in one.items]
    return lambda: [engine.identify(item) for item in items]


def padding(engine: Any, one: Workload) -> Job:
    return lambda: [engine.pad_spans(request.input_ids.copy(), request.items) for request in one.requests]


def positioning(engine: Any, one: Workload) -> Job:
    return lambda: [engine.positions(request.input_ids, request.items, one.layout) for request in one.requests]


def matching(engine: Any, one: Workload) -> Job:
    cache = engine.open_prefix_cache(engine.traits.prefix_page or PAGE)
    for request in one.requests:
        cache.insert(request, NOBODY, len(request.input_ids))
    return lambda: [cache.match(request, NOBODY, len(request.input_ids) - 1) for request in one.requests]


def planning(engine: Any, one: Workload) -> Job:
    line, budget = [(len(request.input_ids), request.items) for request in one.requests], Budget(tokens_per_step=one.step)
    return lambda: engine.plan_steps(line, budget)


def caching(engine: Any, one: Workload) -> Job:
    rows = {count: torch.ones(count, HIDDEN, dtype=torch.bfloat16) for count in {item.token_count for item in one.items}}
    cache, given = engine.open_encoder_cache(1 << 30), [(item.identity, item.token_count) for item in one.items]
    return lambda: [(cache.put(key, rows[count]), cache.get(key, count)) for key, count in given]


def ready(items: Sequence[Item]) -> torch.Tensor:
    """An encoder that costs nothing but memory."""
    return torch.ones(sum(item.token_count for item in items), HIDDEN, dtype=torch.bfloat16)


ENCODERS = dict.fromkeys(Modality, tallied(ready))


def encoding(engine: Any, one: Workload) -> Job:
    """Each call begins with an empty cache."""
    batches = one.batches

    def job() -> list[Any]:
        cache = engine.open_encoder_cache(1 << 30)
        return [engine.encode(batch, ENCODERS, cache) for batch in batches]

    return job


def merging(engine: Any, one: Workload) -> Job:
    table, given = torch.ones(VOCABULARY, HIDDEN, dtype=torch.bfloat16), []
    for batch in one.batches:
        for request, chunk in batch:
            padded = engine.pad_spans(request.input_ids.copy(), request.items) if engine.can("pad_spans") else request.input_ids
            spans = [span for item in request.items for span in item.spans]
            media = sum(max(0, min(span.stop, chunk.stop) - max(span.first, chunk.prefix)) for span in spans)
            rows = torch.ones(media, HIDDEN, dtype=torch.bfloat16)
            given.append((np.array(padded, dtype=np.int64)[chunk.prefix : chunk.stop], request.items, rows, chunk))
    return lambda: [engine.merge(ids.copy(), items, rows, table, chunk) for ids, items, rows, chunk in given]


def pruning(engine: Any, one: Workload) -> Job:
    (request,) = one.requests
    (item,) = request.items
    mask = np.arange(item.token_count) % 10 < 3
    mask[: item.token_count // len(item.spans)] = True
    return lambda: engine.prune_prompt(request.input_ids.copy(), (item,), (mask,))


STEPS = {
    "identity": Step(("identify",), identifying),
    "sentinels": Step(("sentinels",), lambda engine, one: lambda: [engine.sentinels(item.identity) for item in one.items]),
    "placeholders": Step(("pad_spans",), padding),
    "positions": Step(("positions",), positioning),
    "prefix_cache": Step(("open_prefix_cache", "open_prefix_cache.insert", "open_prefix_cache.match"), matching),
    "scheduling": Step(("plan_steps",), planning),
    "encoder_cache": Step(("open_encoder_cache", "open_encoder_cache.put", "open_encoder_cache.get"), caching),
    "encoding": Step(("encode", "open_encoder_cache"), encoding),
    "pruning": Step(("prune_prompt",), pruning),
    "merging": Step(("merge",), merging),
}
"""What each stage is asked."""


def touches(workload: str, stage: str) -> bool:
    """Whether a workload has anything for a stage: only a video is pruned, and only some stages know of chunks."""
    if stage == "pruning":
        return "video" in workload
    return "chunked" not in workload or stage in ("scheduling", "encoding", "merging")


PREFILLS = {
    "one photo": ("What is this? {chelsea}", None),
    "a document of 20 pages": ("{eye} and {cup}, " * 10, None),
    "a batch of 64 photos": ("{eye}{cup}" * 32, None),
    "a document chunked at 2k": ("{eye} and {cup}, " * 10, 64),
}
"""For the whole path: prompts of small pictures, and positions a step."""


def prefilling(engine: Any, workload: str) -> Job:
    checkpoint, (prompt, step) = tiny_qwen2_vl(), PREFILLS[workload]
    text, images = render(prompt, checkpoint.placeholder), pictures(prompt)
    return lambda: engine.prefill(checkpoint, text, images, step)
