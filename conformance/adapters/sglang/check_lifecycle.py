"""What SGLang 0.5.23 gets wrong in the life of a request: seen without the suite."""

from array import array
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import column, embedded, inputs, item, named, sg

CHECKS = Checks()
fails = CHECKS.fails


def turn(session: Any, name: str, ids: list[int], *items: Any, bos: int = -1, **params: Any) -> Any:
    """The `Req` of a turn, with its media, as the scheduler makes one; its reply is one token, a 9."""
    structs = cpu.module("sglang.srt.managers.io_struct")
    controller = cpu.module("sglang.srt.session.session_controller").SessionController
    absent = ("input_text", "input_embeds", "mm_inputs", "token_type_ids", "return_logprob", "logprob_start_len")
    received = structs.TokenizedGenerateReqInput(
        rid=name,
        input_ids=array("q", ids),
        sampling_params=SimpleNamespace(max_new_tokens=1, custom_params=None),
        session_params=structs.SessionParams(id="session", **params),
        **dict.fromkeys((*absent, "top_logprobs_num", "token_ids_logprob", "stream"), None),
    )
    received.mm_inputs = sg().batch.MultimodalProcessorOutput(mm_items=list(items))
    request = session.create_req(received, SimpleNamespace(bos_token_id=bos), 100)
    media = sg().batch.MultimodalInputs(mm_items=list(items))
    controller.adjust_mm_offsets(received, request, media)
    request.extend_image_inputs(media)
    request.output_ids, request.finished_reason = array("q", [9]), sg().batch.FINISH_LENGTH(1)
    return request


def second_turn(
    first: list[int], first_offset: tuple[int, int], second: list[int], **params: Any
) -> tuple[list[int], list[Any]]:
    """Ids and offsets of a second turn with a picture at its second position, behind a first one with a picture."""
    session = cpu.module("sglang.srt.session.session_controller").Session(0, "session")
    turn(session, "first", first, item(offsets=[first_offset]))
    joined = turn(session, "second", second, item(offsets=[(1, 1)]), rid="first", **params)
    return joined.origin_input_ids.tolist(), [one.offsets[0] for one in joined.multimodal_inputs.mm_items]


@fails("LIFECYCLE-05", "LIFECYCLE-06")
def an_offset_of_nothing_is_everything() -> bool:
    """An offset of 0 keeps the whole history and its reply: 0 is taken for no offset."""
    return second_turn([1, 5, 2], (1, 1), [3, 5], offset=0)[0] == [1, 5, 2, 9, 3, 5]


@fails("LIFECYCLE-06", "LIFECYCLE-10")
def pictures_stay_behind_a_cut() -> bool:
    """A picture whose tokens an offset has cut off stays an item, at offsets that are now those of the new turn."""
    return second_turn([1, 2, 5], (2, 2), [3, 5], offset=1) == ([1, 3, 5], [(2, 2), (2, 2)])


@fails("LIFECYCLE-07")
def a_cut_divides_a_picture() -> bool:
    """An offset within a picture leaves it with offsets into the text of the new turn."""
    return second_turn([1, 5, 5], (1, 2), [3, 5], offset=2) == ([1, 5, 3, 5], [(1, 2), (3, 3)])


@fails("LIFECYCLE-08")
def a_negative_offset_counts_from_the_end() -> bool:
    """A negative offset is a slice of Python's, and one beyond the end is the end."""
    cuts = [second_turn([1, 5, 2], (1, 1), [3, 5], offset=offset)[0] for offset in (-1, 99)]
    return cuts == [[1, 5, 2, 3, 5], [1, 5, 2, 9, 3, 5]]


@fails("LIFECYCLE-09")
def a_picture_on_a_dropped_token() -> bool:
    """A picture that begins on the dropped beginning-of-sequence token is moved onto the token behind it."""
    session = cpu.module("sglang.srt.session.session_controller").Session(0, "session")
    turn(session, "first", [1, 2])
    joined = turn(session, "second", [5, 6, 7], item(offsets=[(0, 0)]), bos=5, rid="first")
    return (joined.origin_input_ids.tolist(), joined.multimodal_inputs.mm_items[0].offsets) == ([1, 2, 9, 6, 7], [(3, 3)])


def session_inputs(length: int, before: dict[str, Any], now: dict[str, Any]) -> tuple[Any, Any]:
    """The inputs of a turn that ends a session of this many ids, and those of the turn before it."""
    parent, media = (sg().batch.MultimodalInputs(mm_items=[], **parts) for parts in (before, now))
    request = SimpleNamespace(origin_input_ids=[0] * length, multimodal_inputs=parent, _session_mm_items=[])
    sg().batch.Req._extend_session_image_inputs(request, media)
    return request.multimodal_inputs, parent


@fails("LIFECYCLE-14")
def a_dropped_token_takes_a_position_of_the_history() -> bool:
    """Where a turn has lost its first token, the last position of the history goes, and the lost token's stays."""
    history = torch.tensor([[0, 1, 1], [0, 1, 1], [0, 1, 2]])
    joined, _ = session_inputs(3 + 1, {"mrope_positions": history}, {"mrope_positions": torch.arange(2).expand(3, -1)})
    return bool(joined.mrope_positions.tolist() == [[0, 1, 2, 3]] * 3)


@fails("LIFECYCLE-15")
def replies_have_no_modality() -> bool:
    """The modalities of a reply are left out, those of a dropped token are not, and the history's own list grows too."""
    joined, parent = session_inputs(6, {"token_modalities": [0, 1]}, {"token_modalities": [1, 0]})
    return (joined.token_modalities, parent.token_modalities) == ([0, 1, 1, 0], [0, 1, 1, 0])


def alive(name: str, *items: Any, session: Any = None) -> Any:
    """A `Req` with these items."""
    sampling = cpu.module("sglang.srt.sampling.sampling_params").SamplingParams()
    made = sg().batch.Req(name, "", array("q", [1, 2, 3]), sampling, session=session)
    made.extend_image_inputs(inputs(*items))
    return made


def opened() -> Any:
    """A `SessionController` with a session."""
    structs = cpu.module("sglang.srt.managers.io_struct")
    cache = cpu.module("sglang.srt.mem_cache.radix_cache").RadixCache.create_simulated()
    controller = cpu.module("sglang.srt.session.session_controller").SessionController(cache)
    controller.open(structs.OpenSessionReqInput(capacity_of_str_len=100, session_id="session"))
    return controller


@fails("LIFECYCLE-19", "LIFECYCLE-20", "LIFECYCLE-25", "LIFECYCLE-29", "LIFECYCLE-30", "LIFECYCLE-31")
def an_embedding_beside_a_picture() -> bool:
    """An embedding that came with a request is encoded as if it were a feature where the request has a picture, too."""
    ready = named(1, offsets=[(0, 0)], precomputed_embeddings=column(1))
    raw = named(2, offsets=[(1, 1)], feature=torch.ones(1))
    _, calls = embedded([ready, raw], lambda items: column(1, 2), 2)
    return ready in calls[0] and ready.feature is None


@fails("LIFECYCLE-25", "LIFECYCLE-29", "LIFECYCLE-30", "LIFECYCLE-31")
def a_close_takes_from_a_running_turn() -> bool:
    """Closing a session takes the media of a turn that is still running; its sentinels are then looked up as text."""
    structs, controller = cpu.module("sglang.srt.managers.io_struct"), opened()
    running = turn(controller.get("session"), "first", [1, 5, 2], named(1, offsets=[(1, 1)], feature=torch.ones(1)))
    running.finished_reason = None
    controller.close(structs.CloseSessionReqInput(session_id="session"))
    return running.multimodal_inputs is None and not running.finished()


@fails("LIFECYCLE-25", "LIFECYCLE-29", "LIFECYCLE-30", "LIFECYCLE-31")
def a_picture_behind_a_cut_is_still_embedded() -> bool:
    """A picture that a cut took out of the conversation is encoded for the text in its place, and its rows have no place."""
    gone = named(1, offsets=[(1, 2)], feature=torch.ones(1))
    ids, table = torch.tensor([1, 2, 3, 4]), torch.nn.Embedding(8, 1)
    with patch.object(sg().schedule, "embedding_cache", sg().caches.MultiModalStaticCache(0)):
        embed = sg().utils.embed_mm_inputs
        encoders = {sg().batch.Modality.IMAGE: lambda items: column(1, 2)}
        return error(lambda: embed([inputs(gone)], [0], [4], ids, table, data_embedding_func_mapping=encoders)) == "IndexError"


@fails("LIFECYCLE-26", "LIFECYCLE-32", "LIFECYCLE-37")
def a_row_too_few_ends_the_scheduler() -> bool:
    """A row too few for one picture, encoded or precomputed, is an error of the step, whoever else is in it."""
    two = [named(1, offsets=[(0, 1)]), named(2, offsets=[(2, 3)])]
    encoded = error(lambda: embedded(two, lambda items: [column(1), column(3, 4)], 4))
    ready = named(3, offsets=[(0, 1)], precomputed_embeddings=column(1))
    return encoded == error(lambda: embedded([ready], column, 2)) == "RuntimeError"


@fails("LIFECYCLE-28", "LIFECYCLE-29", "LIFECYCLE-30", "LIFECYCLE-31")
def an_abort_takes_along_what_begins_alike() -> bool:
    """An abort of the request 1 aborts 10 and 11, too."""
    scheduler = cpu.module("sglang.srt.managers.scheduler").Scheduler
    waiting = [alive(name, named(1, feature=torch.ones(1))) for name in ("1", "10", "2")]
    server = SimpleNamespace(
        chunked_req=None,
        mm_receiver=None,
        waiting_queue=list(waiting),
        beam_coordinator=SimpleNamespace(retire_group=lambda request: None),
        send_abort_output=lambda message, request: None,
        disaggregation_mode=None,
        dllm_config=None,
        grammar_manager=SimpleNamespace(abort_requests=lambda message: None),
        collect_inflight_reqs=lambda: [],
        _release_aborted_request=lambda request: request.release_mm_inputs_on_abort(),
    )
    scheduler.abort_request(server, cpu.module("sglang.srt.managers.io_struct").AbortReq(rid="1"))
    return [request.rid for request in server.waiting_queue] == ["2"] and waiting[1].multimodal_inputs is None


@fails("LIFECYCLE-31")
def a_copy_for_each_request() -> bool:
    """Two requests with one picture hold its feature twice, though its hash is known to be the same."""
    one, other = (alive(name, named(1, feature=torch.ones(1))).multimodal_inputs.mm_items[0] for name in "ab")
    return bool(one.hash == other.hash and one.feature.data_ptr() != other.feature.data_ptr())


@fails("LIFECYCLE-35")
def the_reply_at_each_retraction() -> bool:
    """A request that comes back a second time has the positions of its whole reply once more."""
    request = alive("a", item())
    request.multimodal_inputs.mrope_positions = torch.arange(3).expand(3, -1)
    request.output_ids = array("q", [7, 8])
    for _ in range(2):
        request.reset_for_retract()
        request.init_next_round_input()
    return bool(request.multimodal_inputs.mrope_positions.shape[1] == 3 + 2 + 2)
