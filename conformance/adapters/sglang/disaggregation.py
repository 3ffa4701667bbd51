"""SGLang's encoders as instances: whom a prefill asks, and how it puts parts together.

A prefill is `MMReceiverHTTP` on one rank, with its own lists of requests that wait. What is not there is the network: a
request to an encoder is noted where it would be posted, and what arrives lies in the socket that all requests share.

A part travels as an `EmbeddingData`, which has a grid for each item, and times for videos or sizes for pictures beside it:
there lie the fields `grid_thw` and `seconds`. What a model's processor does with the rows of a modality, cutting them at the
offsets of its items, is done here by the plainest one, under SGLang's own check.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.sglang import cpu
from reference.items import Item, Modality, Request

MODULE = "sglang.srt.disaggregation.encoder.receiver"
GRIDS = {Modality.IMAGE: "img_grid_thw", Modality.VIDEO: "video_grid_thw", Modality.AUDIO: "audio_feature_lens"}
TIMES = {Modality.IMAGE: "original_image_sizes", Modality.VIDEO: "second_per_grid_ts"}


def assign(
    items: Sequence[Item], options: Sequence[Mapping[str, Any]], encoders: int
) -> list[tuple[int, list[int], list[dict[str, Any]]]]:
    """`_extract_url_data`, `_assign_items_by_modality` without its dice, and the requests that `encode` would post.

    Without encoders `_send_encode_request` decides. A medium is a link that is its number; one with an embedding is the
    dictionary that a client sends.
    """
    module = cpu.module(MODULE)
    receiver = object.__new__(module.MMReceiverHTTP)
    asked = _generate_request(module, items, options)
    if encoders < 1:
        receiver.encode_urls = []
        asked.rid = "a"
        receiver._send_encode_request(asked)
        return []
    receiver.host = "host"
    media = receiver._extract_url_data(asked)
    assigned = receiver._assign_items_by_modality(media, encoders, random_shuffle=False)
    posted: list[dict[str, Any]] = []
    with patch.object(module, "aiohttp", _noting(posted)):
        urls = [f"encoder {number}" for number in range(encoders)]
        asyncio.run(receiver.encode("a", media, 0, "encode", assigned, urls))
    return [_part(one) for one in posted]


def _generate_request(module: Any, items: Sequence[Item], options: Sequence[Mapping[str, Any]]) -> Any:
    media: list[tuple[Modality, dict[str, Any]]] = []
    for number, (item, told) in enumerate(zip(items, options, strict=True)):
        raw = {"url": str(number)} if item.embedding is None else {"format": "precomputed_embedding", "number": number}
        media.append((item.modality, {**raw, **told}))
    of = {modality: [one for kind, one in media if kind is modality] or None for modality in Modality}
    return module.GenerateReqInput(
        text="", image_data=of[Modality.IMAGE], video_data=of[Modality.VIDEO], audio_data=of[Modality.AUDIO]
    )


def _noting(posted: list[dict[str, Any]]) -> Any:
    """An aiohttp whose sessions note what they would post."""

    class Session:
        def __init__(self, **options: Any) -> None:
            """It connects to nobody."""

        async def __aenter__(self) -> "Session":
            return self

        async def __aexit__(self, *error: object) -> None:
            """It has nothing to close."""

        async def post(self, url: str, json: dict[str, Any]) -> Any:
            posted.append(json)
            return SimpleNamespace(status=200)

    return SimpleNamespace(ClientSession=Session, ClientTimeout=lambda **limits: None)


def _part(posted: Mapping[str, Any]) -> tuple[int, list[int], list[dict[str, Any]]]:
    media = [one if isinstance(one, dict) else {"url": one} for one in posted["mm_items"]]
    options = [{name: value for name, value in one.items() if name != "url"} for one in media]
    links = [one["url"] for one in media]
    numbers = [int(link["number"] if isinstance(link, dict) else link) for link in links]
    return posted["encoder_idx"], numbers, options


class Receiver:
    """`MMReceiverHTTP._process_waiting_requests`: one tick takes in, receives, and gives up."""

    def __init__(self, limit_s: float) -> None:
        self._module = module = cpu.module(MODULE)
        self._mail: deque[list[Any]] = deque()
        self._outcomes: dict[str, Any] = {}
        self._requests: dict[str, Request] = {}
        self._kinds: dict[str, list[Modality]] = {}
        self._now = 0.0
        receiver = self._receiver = object.__new__(module.MMReceiverHTTP)
        receiver.mm_processor, receiver.model_type, receiver.hostname = None, "qwen2_vl", "host"
        receiver.tp_size, receiver.tp_group = 1, SimpleNamespace(cpu_group=None)
        receiver.waiting_list, receiver.waiting_by_rid, receiver.wait_timeout = [], {}, limit_s
        receiver.scheduler_context, receiver.scheduler_embedding_port, receiver.encode_urls = None, 0, []
        receiver.scheduler_recv_socket = SimpleNamespace(recv_multipart=self._read)
        receiver.create_req = lambda asked: asked

    def expect(self, request: Request, parts: Sequence[Sequence[int]], now: float) -> None:
        """A request that has all its embeddings is not sent to an encoder, and does not wait."""
        self._now, self._requests[request.id] = now, request
        if not parts:
            self._outcomes[request.id] = request.items
            return
        self._kinds[request.id] = [request.items[numbers[0]].modality for numbers in parts]
        unused = ("input_embeds", "mm_inputs", "token_type_ids", "sampling_params", "return_logprob", "logprob_start_len")
        asked = self._module.TokenizedGenerateReqInput(
            rid=request.id, input_text="", input_ids=None, need_wait_for_mm_inputs=True, num_items_assigned={},
            encoder_urls=["encoder"], top_logprobs_num=0, token_ids_logprob=None, stream=False, **dict.fromkeys(unused),
        )  # fmt: skip
        self._tick([asked])

    def arrive(
        self, id: str, part: int, parts: int, rows: torch.Tensor | Exception, fields: Sequence[Mapping[str, Any]]
    ) -> None:
        """A message in the shared socket, which is read at once."""
        modality = [*self._kinds.get(id, [])[part:], Modality.IMAGE][0]
        name = self._module.create_part_req_id(id, part)
        kind = self._module.Modality[modality.name]
        if isinstance(rows, Exception):
            data = self._module.EmbeddingData(name, parts, part, None, kind, error_msg=str(rows), error_code=500)
            self._mail.append([data])
        else:
            data = self._module.EmbeddingData(
                name, parts, part, _grid(modality, fields), kind, rows, **_times(modality, fields)
            )
            self._mail.append([data.copy_without_embedding(), rows.contiguous().view(torch.uint8).numpy().tobytes()])
        with self._here():
            self._receiver._drain_scheduler_embeddings()

    def fail(self, id: str, error: Exception) -> None:
        """`EncoderDispatchErrorReq`."""
        self._tick([self._module.EncoderDispatchErrorReq(rid=id, error_msg=str(error), error_code=502)])

    def cancel(self, id: str) -> None:
        """`abort_waiting_requests`. Its own client is told that it was aborted, which is no outcome."""
        self._receiver.abort_waiting_requests(SimpleNamespace(rid=id, abort_all=False))
        self._tick([])
        self._outcomes.pop(id, None)

    def poll(self, now: float) -> dict[str, Any]:
        """What the ticks have given since."""
        self._now = now
        self._tick([])
        outcomes, self._outcomes = self._outcomes, {}
        return outcomes

    def held_bytes(self) -> int:
        """The rows of all parts that have come for requests in the list."""
        came = [one.recv_embedding_data for one in self._receiver.waiting_list if one.recv_embedding_data is not None]
        return sum(rows.nbytes for one in came for rows in one.embedding_list if rows is not None)

    def _tick(self, asked: list[Any]) -> None:
        with self._here():
            ready, failed = self._receiver._process_waiting_requests(asked, self._waiting)
        self._outcomes |= {one.rid: items_of(one.mm_inputs.mm_items) for one in ready}
        self._outcomes |= {one.rid: RuntimeError(message) for one, message, _ in failed}

    def _waiting(self, **known: Any) -> Any:
        """A request that waits, with a processor that knows where its items stand; nobody is told where it listens."""
        waiting_class = type("Waiting", (self._module.WaitingZmqRequest,), {"send_encode_request": lambda self: None})
        return waiting_class(**{**known, "mm_processor": _processor(self._requests[known["rid"]]), "zmq_context": "none"})

    @contextmanager
    def _here(self) -> Iterator[None]:
        """One rank, the clock of the suite, and a wire that is a list."""
        wire = SimpleNamespace(Again=BlockingIOError, ZMQError=OSError, NOBLOCK=0, PULL=0)
        module, clock = self._module, SimpleNamespace(time=lambda: self._now, monotonic=lambda: self._now)
        with ExitStack() as stack:
            stack.enter_context(patch.object(module, "time", clock))
            stack.enter_context(patch.object(module, "zmq", wire))
            stack.enter_context(patch.object(module, "safe_pickle_loads", lambda sent: sent))
            stack.enter_context(patch.object(torch.distributed, "all_reduce", lambda *given, **named: None))
            yield

    def _read(self, **options: Any) -> list[Any]:
        if not self._mail:
            raise BlockingIOError
        return self._mail.popleft()


def _grid(modality: Modality, fields: Sequence[Mapping[str, Any]]) -> Any:
    if not fields:
        return None
    grids = torch.tensor([one.get("grid_thw", (0, 0, 0)) for one in fields], dtype=torch.float64)
    if modality is Modality.AUDIO:
        return torch.cat([grids, torch.tensor([[one.get("seconds", 0.0)] for one in fields], dtype=torch.float64)], dim=1)
    return grids


def _times(modality: Modality, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {TIMES[modality]: [one.get("seconds", 0.0) for one in fields]} if fields and modality in TIMES else {}


def _processor(request: Request) -> Any:
    base = cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor
    batch = cpu.module("sglang.srt.managers.schedule_batch")

    def get_mm_data(self: Any, prompt: Any, embeddings: Mapping[Any, torch.Tensor], **known: Any) -> Any:
        at, items = dict.fromkeys(Modality, 0), []
        counts = dict.fromkeys(Modality, 0)
        for item in request.items:
            kind = batch.Modality[item.modality.name]
            if kind not in embeddings:
                continue
            first = at[item.modality]
            at[item.modality] += item.token_count
            fields = _fields(item.modality, counts[item.modality], known)
            counts[item.modality] += 1
            items.append(_Made(item, kind, embeddings[kind][first : at[item.modality]], fields))
        return SimpleNamespace(mm_items=items, input_ids=request.input_ids)

    methods = {"get_mm_data": get_mm_data, "process_mm_data_async": None, "prefer_tokenized_input": False}
    return object.__new__(type("Plainest", (base,), {**methods, "__abstractmethods__": frozenset()}))


def _fields(modality: Modality, number: int, known: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of the n-th item of a modality."""
    told: dict[str, Any] = {}
    grids = known.get(GRIDS[modality])
    rows = [] if grids is None else grids.reshape(-1, 4 if modality is Modality.AUDIO else 3).tolist()
    times = [row[3] for row in rows] if modality is Modality.AUDIO else known.get(TIMES[modality], [])
    if number < len(rows):
        told["grid_thw"] = tuple(int(value) for value in rows[number][:3])
    if number < len(times):
        told["seconds"] = float(times[number])
    return told


class _Made:
    """An item as SGLang's check reads it, which becomes one of ours when it is ready."""

    def __init__(self, item: Item, kind: Any, rows: torch.Tensor, fields: Mapping[str, Any]) -> None:
        self.item, self.modality, self.precomputed_embeddings, self.fields = item, kind, rows, fields
        self.offsets = [(span.first, span.last) for span in item.spans]

    def ours(self) -> Item:
        known: dict[str, Any] = {"identity": self.item.identity, "fields": {**self.item.fields, **self.fields}}
        return Item(modality=self.item.modality, spans=self.item.spans, embedding=self.precomputed_embeddings, **known)


def items_of(made: Sequence[Any]) -> tuple[Item, ...]:
    """The items of a request that is ready."""
    return tuple(one.ours() if isinstance(one, _Made) else one for one in made)
