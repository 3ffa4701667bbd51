"""What SGLang 0.5.23 gets wrong between its encoders and its prefill, seen without the suite.

`python -m conformance.adapters.sglang.check` runs these, too.
"""

from threading import Lock
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks
from conformance.adapters.sglang import cpu

CHECKS = Checks()
fails = CHECKS.fails

UNUSED = (
    "input_text", "input_ids", "input_embeds", "mm_inputs", "token_type_ids", "sampling_params", "return_logprob",
    "logprob_start_len", "top_logprobs_num", "token_ids_logprob", "stream",
)  # fmt: skip
"""What a request says to the scheduler beside its name."""


def receiving() -> Any:
    cpu.prepare()
    return cpu.module("sglang.srt.disaggregation.encoder.receiver")


def receiver(*waiting: Any) -> Any:
    made = object.__new__(receiving().MMReceiverHTTP)
    made.encode_urls, made.waiting_list, made.waiting_by_rid = [], list(waiting), {one.rid: one for one in waiting}
    return made


def waiting(rid: str) -> Any:
    """A request that waits, of SGLang's own class."""
    made = object.__new__(receiving().WaitingZmqRequest)
    made.rid, made.status, made.error_msg = rid, receiving().WaitingMMRequestStatus.PENDING, None
    made.recv_req, made.recv_socket, made.embedding_pool = SimpleNamespace(rid=rid), None, None
    made.registration_future = made.registration_error = made._pool_slot_id = made._mm_finalizer = None
    made.recv_embedding_data, made.start_time, made.embeddings_buffer, made.registration_lock = None, 0.0, None, Lock()
    return made


def asked(*media: Any) -> Any:
    made = receiving().GenerateReqInput(text="", image_data=list(media))
    made.rid, made.need_wait_for_mm_inputs = "a", True
    return made


def part(number: int, rows: torch.Tensor, **known: Any) -> Any:
    module = receiving()
    return module.EmbeddingData("a", 2, number, torch.tensor([[1, 2, 4]]), module.Modality.VIDEO, rows, **known)


def joined(first: Any, second: Any) -> Any:
    made = receiving().MultiModalEmbeddingData.from_embedding_data(first)
    made.add(second)
    return made


@fails("DISAGGREGATION-01", "DISAGGREGATION-04")
def a_precomputed_embedding_is_sent_to_an_encoder() -> bool:
    """A medium that comes with its embedding is assigned to an encoder like a link."""
    one = receiver()
    media = one._extract_url_data(asked({"format": "precomputed_embedding", "precomputed_embeddings": [1.0]}, "link"))
    (counts,) = one._assign_items_by_modality(media, 2, random_shuffle=False).values()
    return bool(counts == [1, 1])


@fails("DISAGGREGATION-05")
def no_encoder_is_no_error() -> bool:
    """Without an encoder the request goes on, and its media are processed by a server that may have no tower."""
    one = asked("link")
    return receiver()._send_encode_request(one) is None and not one.need_wait_for_mm_inputs


@fails("DISAGGREGATION-24", "DISAGGREGATION-31", "DISAGGREGATION-35")
def all_items_take_rows_of_an_encoder() -> bool:
    """The rows of a request are those of encoders alone, by modality: there is no place for embeddings beside them."""
    made = joined(part(0, torch.zeros(2, 4)), part(1, torch.zeros(3, 4)))
    (rows,) = made.get_embedding(is_concat=True).values()
    return len(rows) == 5 and not hasattr(made, "precomputed_embeddings")


@fails("DISAGGREGATION-25")
def an_abort_goes_by_the_beginning_of_a_name() -> bool:
    """An abort of the request 1 ends 10, too, and one without a name ends all."""
    one, ten, two = waiting("1"), waiting("10"), waiting("2")
    for made in (one, ten, two):
        made.release_resources = lambda: None
    receiver(one, ten, two).abort_waiting_requests(SimpleNamespace(rid="1", abort_all=False))
    first = [made.status.name for made in (one, ten, two)]
    receiver(two).abort_waiting_requests(SimpleNamespace(rid="", abort_all=False))
    return first == ["FAIL", "FAIL", "PENDING"] and bool(two.status.name == "FAIL")


@fails("DISAGGREGATION-25")
def a_name_is_cut_twice() -> bool:
    """The suffix of a part is cut off its name twice, so that a request that is called so itself never gets its rows."""
    module = receiving()
    data = part(0, torch.zeros(1, 4))
    data.req_id = module.create_part_req_id("a_local_part_0", 0)
    found = module._resolve_embedding_part_request_id(data)
    return bool(found == "a_local_part_0" and not module._embedding_part_matches_request(data, "a_local_part_0"))


@fails("DISAGGREGATION-27")
def types_are_mixed() -> bool:
    """Parts of two types become one tensor of the wider type, without a word."""
    made = joined(part(0, torch.zeros(2, 4)), part(1, torch.zeros(2, 4, dtype=torch.float64)))
    return [rows.dtype for rows in made.get_embedding(is_concat=True).values()] == [torch.float64]


@fails("DISAGGREGATION-31")
def times_move_to_the_neighbour() -> bool:
    """Where the first of two videos has no times, those of the second are the first in the list."""
    made = joined(part(0, torch.zeros(2, 4)), part(1, torch.zeros(2, 4), second_per_grid_ts=[0.25]))
    return bool(made.get_mm_extra_meta()["second_per_grid_ts"] == [0.25])


@fails("DISAGGREGATION-34")
def the_second_of_a_name_takes_the_place_of_the_first() -> bool:
    """A request with the name of one that waits takes its place in the table by which parts are delivered."""
    made = receiver()
    first, second = (tick(made, waiting("a"), now=0.0) for _ in range(2))
    return first == second == ([], []) and len(made.waiting_list) == 2 and len(made.waiting_by_rid) == 1


@fails("DISAGGREGATION-50")
def complete_is_not_in_time() -> bool:
    """A request that is complete is timed out if the scheduler comes to it late: its status is overwritten."""
    one = waiting("a")
    one.status = receiving().WaitingMMRequestStatus.SUCCESS
    _, failed = tick(receiver(one), now=60.0)
    return [message for _, message, _ in failed] == ["Timeout waiting for image embedding after 10.0s"]


def tick(made: Any, *new: Any, now: float) -> Any:
    """One tick of a scheduler of one rank: these requests begin to wait."""
    module = receiving()
    made.mm_processor = made.model_type = made.hostname = made.scheduler_context = made.scheduler_embedding_port = None
    made.scheduler_recv_socket, made.tp_size, made.wait_timeout = None, 1, 10.0
    made.tp_group, made.create_req = SimpleNamespace(cpu_group=None), lambda asked: asked
    requests = []
    for one in new:
        one.send_encode_request = lambda: None
        known = {"rid": one.rid, "need_wait_for_mm_inputs": True}
        requests.append(module.TokenizedGenerateReqInput(**dict.fromkeys(UNUSED), **known))
    clock = SimpleNamespace(time=lambda: now)
    with patch.object(module, "time", clock), patch.object(torch.distributed, "all_reduce", lambda *given, **named: None):
        return made._process_waiting_requests(requests, lambda **known: next(one for one in new if one.rid == known["rid"]))
