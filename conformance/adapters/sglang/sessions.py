"""SGLang's sessions: a turn behind its history.

A scheduler takes a turn in with `Session.create_req`, `SessionController.adjust_mm_offsets`, the padding of its media and
`Req.extend_image_inputs`, in this order; here they run in this order, on requests of SGLang's own class.
"""

from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from reference.items import Item, Modality, Request, Span


def join_turn(
    sglang: Sglang, history: Request, reply: NDArray[np.int64], turn: Request, keep: int | None, bos: int | None
) -> tuple["array[int]", list[Item]]:
    """A session with the history as its finished turn, and the turn that appends to it, cut by `SessionParams.offset`.

    A history without positions is no turn at all. The ids are those before padding.
    """
    session = cpu.module("sglang.srt.session.session_controller").Session(0, "session")
    tokenizer = None if bos is None else SimpleNamespace(bos_token_id=bos)
    parent = None
    if len(history.input_ids):
        first = _taken_in(sglang, session, history, tokenizer, rid="history")
        first.output_ids = array("q", reply.tobytes())
        first.finished_reason = sglang.batch.FINISH_LENGTH(len(reply))
        parent = "history"
    made = _taken_in(sglang, session, turn, tokenizer, rid="turn", parent=parent, offset=keep)
    items = [] if made.multimodal_inputs is None else made.multimodal_inputs.mm_items
    return made.origin_input_ids_unpadded, [_item(item) for item in items]


def join_positions(
    sglang: Sglang, previous: NDArray[np.int64], length: int, turn: NDArray[np.int64], is_stripped: bool
) -> tuple[torch.Tensor, int]:
    """`Req._extend_session_image_inputs`; of a token that was dropped it learns by the number of ids alone."""
    joined = _joined(
        sglang,
        length + turn.shape[1] - is_stripped,
        {"mrope_positions": torch.from_numpy(previous)},
        {"mrope_positions": torch.from_numpy(turn)},
    )
    return joined.mrope_positions, int(joined.mrope_position_delta)


def join_modalities(
    sglang: Sglang, previous: NDArray[np.int8], length: int, turn: NDArray[np.int8], is_stripped: bool
) -> list[int]:
    """`Req._extend_session_image_inputs`, and the `MultimodalInputs.merge` in it."""
    total = length + len(turn) - is_stripped
    joined = _joined(sglang, total, {"token_modalities": previous.tolist()}, {"token_modalities": turn.tolist()})
    return list(joined.token_modalities)


def join_padded(
    sglang: Sglang,
    previous: NDArray[np.int64],
    turn_ids: NDArray[np.int64],
    items: Sequence[Item],
    made: NDArray[np.int64] | None,
) -> "array[int]":
    """`Scheduler._try_apply_padded_mm_input_ids`, and `duplicate_pad_mm_input_ids` where it gives up."""
    inputs = translate.inputs(sglang, items)
    inputs.padded_input_ids = None if made is None else made.tolist()
    request = SimpleNamespace(origin_input_ids=array("q", previous.tobytes()) + array("q", turn_ids.tobytes()))
    _pad(sglang, SimpleNamespace(input_ids=array("q", turn_ids.tobytes())), request, inputs)
    padded: array[int] = request.origin_input_ids
    return padded


def _taken_in(
    sglang: Sglang,
    session: Any,
    turn: Request,
    tokenizer: Any,
    *,
    rid: str,
    parent: str | None = None,
    offset: int | None = None,
) -> Any:
    """The `Req` that the scheduler makes of a turn. One that it ends at once, with a message, is refused."""
    structs = cpu.module("sglang.srt.managers.io_struct")
    sampling = cpu.module("sglang.srt.sampling.sampling_params").SamplingParams(max_new_tokens=1 << 30)
    output = None
    if turn.items:
        made = [translate.data_item(sglang, item) for item in turn.items]
        output = sglang.batch.MultimodalProcessorOutput(mm_items=made, im_token_id=0, video_token_id=0, audio_token_id=0)
    received = structs.TokenizedGenerateReqInput(
        rid=rid,
        input_text=None,
        input_ids=array("q", turn.input_ids.tobytes()),
        input_embeds=None,
        mm_inputs=output,
        token_type_ids=None,
        sampling_params=sampling,
        return_logprob=False,
        logprob_start_len=-1,
        top_logprobs_num=0,
        token_ids_logprob=None,
        stream=False,
        session_params=structs.SessionParams(id=session.session_id, rid=parent, offset=offset),
    )
    with cpu.module("sglang.srt.runtime_context").get_parallel().override(tp_rank=0):
        request = session.create_req(received, tokenizer, 1 << 20)
    if request.to_finish is not None:
        raise ValueError(request.to_finish.message)
    if output is not None:
        inputs = sglang.batch.MultimodalInputs.from_processor_output(output)
        controller = cpu.module("sglang.srt.session.session_controller").SessionController
        controller.adjust_mm_offsets(received, request, inputs)
        _pad(sglang, received, request, inputs)
        request.extend_image_inputs(inputs)
    return request


def _pad(sglang: Sglang, received: Any, request: Any, inputs: Any) -> None:
    scheduler = cpu.module("sglang.srt.managers.scheduler").Scheduler
    if not scheduler._try_apply_padded_mm_input_ids(received, request, inputs):
        pad = sglang.utils.duplicate_pad_mm_input_ids
        request.origin_input_ids = pad(request.origin_input_ids, inputs, sglang.utils.pad_mm_tokens)


def _joined(sglang: Sglang, length: int, before: dict[str, Any], now: dict[str, Any]) -> Any:
    """What `_extend_session_image_inputs` makes of two turns, for a session of `length` ids."""
    made = sglang.batch.MultimodalInputs
    request = SimpleNamespace(
        origin_input_ids=[0] * length, multimodal_inputs=made(mm_items=[], **before), _session_mm_items=[]
    )
    sglang.batch.Req._extend_session_image_inputs(request, made(mm_items=[], **now))
    return request.multimodal_inputs


def _item(made: Any) -> Item:
    """An item of SGLang's in the suite's terms."""
    return Item(
        modality=Modality[made.modality.name],
        spans=tuple(Span(first, last) for first, last in made.offsets),
        feature=made.feature,
        embedding=made.precomputed_embeddings,
        fields=made.model_specific_data,
        identity=made.identity,
    )
