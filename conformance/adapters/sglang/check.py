"""What SGLang 0.5.23 gets wrong, seen without the suite.

`python -m conformance.adapters.sglang.check` prints one line a finding, with the requirements that it fails. Here are
only SGLang's own functions and inputs made by hand: no rule, no oracle and no translation of the suite has a part in it,
so that an entry in the list of known failures rests on more than the suite's word.
"""

import asyncio
import struct
import sys
import zlib
from array import array
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import check_disaggregation, check_parallel, check_requests, check_transport, cpu

CHECKS = Checks()
fails = CHECKS.fails


def sg() -> cpu.Sglang:
    return cpu.prepare()


def item(kind: str = "IMAGE", **parts: Any) -> Any:
    return sg().batch.MultimodalDataItem(modality=sg().batch.Modality[kind], **parts)


def named(number: int, kind: str = "IMAGE", **parts: Any) -> Any:
    made = item(kind, **parts)
    made.set_hash(number)
    return made


def identity(**parts: Any) -> int:
    made = item(**parts)
    made.set_pad_value()
    return int(made.hash)


def inputs(*items: Any) -> Any:
    return sg().batch.MultimodalInputs(mm_items=list(items), im_token_id=0, video_token_id=0, audio_token_id=0)


def padded(length: int, *items: Any) -> list[int]:
    return list(sg().utils.pad_mm_tokens(array("q", range(length)), inputs(*items)))


def embedded(
    items: list[Any], encode: Any, length: int, *, requests: int = 1, cache_bytes: int = 1 << 20
) -> tuple[list[float], list[list[Any]]]:
    """What `embed_mm_inputs` makes of one prompt of this length or several alike, and the items of each encoder call."""
    calls: list[list[Any]] = []

    def encoder(made: Any) -> Any:
        calls.append(list(made))
        return encode(made)

    with patch.object(sg().schedule, "embedding_cache", sg().caches.MultiModalStaticCache(cache_bytes)):
        merged, _ = sg().utils.embed_mm_inputs(
            [inputs(*items)] * requests,
            [0] * requests,
            [length] * requests,
            torch.tensor(padded(length, *items) * requests),
            torch.nn.Embedding(200, 1),
            data_embedding_func_mapping={} if encode is None else dict.fromkeys(sg().batch.Modality.all(), encoder),
        )
    return merged.flatten().tolist(), calls


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None]


@fails("IDENTITY-06")
def shape() -> bool:
    """The hash of a feature leaves out its shape: [4, 6] and [6, 4] are one item."""
    ramp = torch.arange(24.0)
    return identity(feature=ramp.view(4, 6)) == identity(feature=ramp.view(6, 4))


@fails("IDENTITY-07")
def dtype() -> bool:
    """The hash of a feature leaves out its dtype: float32 and int32 of equal bytes are one item."""
    return identity(feature=torch.zeros(4)) == identity(feature=torch.zeros(4, dtype=torch.int32))


@fails("IDENTITY-09")
def framing() -> bool:
    """The hash of a list is that of its tensors joined; a nested list of tensors is a TypeError."""
    ramp = torch.arange(6.0)
    joined = identity(feature=[ramp[:2], ramp[2:]]) == identity(feature=[ramp[:3], ramp[3:]]) == identity(feature=ramp)
    return joined and error(lambda: identity(feature=[[ramp], [ramp]])) == "TypeError"


@fails("IDENTITY-10", "IDENTITY-11", "IDENTITY-12")
def neither_kind_nor_fields() -> bool:
    """The hash leaves out the modality, whether it is a feature or an embedding, and all fields (grids, frame times)."""
    ramp = torch.arange(6.0)
    items: list[dict[str, Any]] = [{"feature": ramp, "kind": "VIDEO"}, {"precomputed_embeddings": ramp}]
    items += [{"feature": ramp, "model_specific_data": {"image_grid_thw": (1, height, 6 // height)}} for height in (2, 3)]
    return {identity(**one) for one in items} == {identity(feature=ramp)}


@fails("IDENTITY-02")
def byte_order() -> bool:
    """An array that is stored big-endian has another hash than an equal one."""
    return identity(feature=np.arange(3, dtype=">f4")) != identity(feature=np.arange(3, dtype="<f4"))


@fails("IDENTITY-18")
def one_element_of_a_column() -> bool:
    """A tensor of one element that was cut out of a column cannot be hashed, nor can a list of arrays."""
    cut = error(lambda: identity(feature=torch.arange(6.0).view(2, 3)[:1, 0]))
    return (cut, error(lambda: identity(feature=[np.zeros(2)]))) == ("RuntimeError", "TypeError")


@fails("IDENTITY-19")
def no_stable_content() -> bool:
    """An array of objects is hashed by their addresses, so equal ones differ; a None in a list is an AttributeError."""
    arrays = [np.array([float(number) for number in (300, 301)], dtype=object) for _ in range(2)]
    one, other = (identity(feature=array) for array in arrays)
    return one != other and error(lambda: identity(feature=[torch.zeros(1), None])) == "AttributeError"


@fails("IDENTITY-20")
def sixty_four_bits() -> bool:
    """An item that is known by its content is known by 64 bits; nothing sets the wider identity."""
    made = item(feature=torch.zeros(1))
    made.set_pad_value()
    return made.identity is None and 0 <= made.hash < 2**64


@fails("IDENTITY-21")
def mersenne() -> bool:
    """Hashes that differ by 2**61 - 1 combine to one key: the key is Python's hash of a tuple."""
    combine = sg().caches.MultiModalStaticCache.combine_hashes
    return bool(combine([5, 1]) == combine([5 + 2**61 - 1, 1]))


def adopted(kinds: list[str], hashes: list[str]) -> tuple[list[int | None], int]:
    """The hashes of items after `_tokenize_one_request`, and how often it warned."""
    manager = cpu.module("sglang.srt.managers.tokenizer_manager")
    items = [item(kind) for kind in kinds]
    warnings: list[Any] = []

    async def process(**_: Any) -> Any:
        return sg().batch.MultimodalProcessorOutput(mm_items=items)

    unused = ("_validate_mm_limits", "_normalize_mm_content_hashes", "_validate_one_request", "_create_tokenized_object")
    tokenizer = SimpleNamespace(
        mm_processor=SimpleNamespace(prefer_tokenized_input=True, process_mm_data_async=process),
        model_config=SimpleNamespace(hf_config=SimpleNamespace(architectures=[])),
        max_req_input_len=None,
        **{name: lambda *arguments: None for name in unused},
    )
    request = cpu.module("sglang.srt.managers.io_struct").GenerateReqInput(input_ids=[0], image_data=[b""], mm_hashes=hashes)
    with patch.object(manager.logger, "warning", lambda *words: warnings.append(words)):
        asyncio.run(manager.TokenizerManager._tokenize_one_request(tokenizer, request))
    return [one.hash for one in items], len(warnings)


@fails("IDENTITY-25")
def hashes_by_modality() -> bool:
    """Caller hashes, documented as one a picture, are counted against the items of all modalities.

    So those of the pictures alone are dropped, and four for two pictures are taken where two recordings stand beside them.
    """
    mixed = ["AUDIO", "IMAGE", "VIDEO", "IMAGE"]
    alone, too_many = adopted(mixed, ["1", "2"]), adopted(mixed, ["1", "2", "3", "4"])
    return (alone, too_many) == (([None] * 4, 1), ([1, 2, 3, 4], 0))


@fails("IDENTITY-26")
def hashes_as_python_reads_them() -> bool:
    """A caller hash is whatever Python's int(text, 16) takes, cut to 64 bits: 0x1f, 1_f, -1, blanks, 64 digits."""
    hashes = ["0x1f", "1_f", " 1f", "-1", "a" * 16 + "0" * 48]
    return adopted(["IMAGE"] * 5, hashes) == ([31, 31, 31, 2**64 - 1, 0], 0)


@fails("SENTINELS-04")
def hash_is_cut() -> bool:
    """`set_hash` keeps the low 64 bits of any number: -1 and 2**64 - 1 are one item."""
    return bool(named(-1).pad_values == named(2**64 - 1).pad_values == named(2**65 - 1).pad_values)


@fails("PLACEHOLDERS-01")
def search_wraps_around() -> bool:
    """A prompt that begins and ends with the placeholder has a span from its end to its start; one of nothing else none."""
    find = cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor.get_mm_items_offset
    return (find(torch.tensor([3, 1, 3]), 3), find(torch.tensor([3, 3, 3]), 3)) == ([(2, 0)], [])


@fails("PLACEHOLDERS-07", "PLACEHOLDERS-17")
def overlaps_are_padded() -> bool:
    """Of two items at one position the later one wins, and a span that leaves the prompt is cut: no error."""
    late = named(2, offsets=[(1, 2)])
    both, alone = padded(3, named(1, offsets=[(0, 1)]), late), padded(2, late)
    return [both[1:], alone[1:]] == [late.padding_sequence(2), late.padding_sequence(1)]


@fails("PLACEHOLDERS-15")
def pairs_that_do_not_pair_up() -> bool:
    """A prompt whose pair tokens do not balance stays unpadded; a slice before any item gets the last item's sentinels."""

    def pairs(*ids: int) -> list[int]:
        made, both = inputs(named(1), named(2)), [(101, 102), (103, 104)]
        pad = sg().utils.pad_mm_token_pairs
        return list(pad(array("q", ids), made, data_token_pairs=both, data_start_token_ids=[101]))

    unbalanced, early = pairs(101, 7, 102, 101, 7), pairs(103, 7, 104)
    nested = error(lambda: pairs(101, 7, 103, 7, 104, 7, 102))
    return (unbalanced, early[1], nested) == ([101, 7, 102, 101, 7], named(2).pad_value, "AssertionError")


@fails("PREFIX_CACHE-17")
def page_of_no_positions() -> bool:
    """A radix cache takes a page of no positions, and divides by it at its first prompt."""
    radix, base = (cpu.module(f"sglang.srt.mem_cache.{name}") for name in ("radix_cache", "base_prefix_cache"))
    cache = radix.RadixCache.create_simulated(page_size=0)
    key = radix.RadixKey(array("q", [1, 2]))
    return error(lambda: cache.match_prefix(base.MatchPrefixParams(key=key))) == "ZeroDivisionError"


@fails("ENCODER_CACHE-08", "ENCODER_CACHE-09")
def the_old_value_stays() -> bool:
    """Putting a key again keeps the old embedding, and says that the new one was kept, even one larger than the cache."""
    cache, result = sg().caches.MultiModalStaticCache(64), sg().caches.EmbeddingResult
    answers = [cache.set(1, result(embedding=torch.full((rows, 1), float(rows)))) for rows in (2, 3, 100)]
    return answers == [True] * 3 and bool(cache.get_single(1).embedding.tolist() == [[2.0], [2.0]])


@fails("ENCODER_CACHE-21", "ENCODER_CACHE-22")
def the_cache_takes_anything() -> bool:
    """A cache of nan bytes keeps everything, and an embedding without rows is taken."""
    cache, result = sg().caches.MultiModalStaticCache(float("nan")), sg().caches.EmbeddingResult
    kept = [cache.set(number, result(embedding=torch.zeros(1024))) for number in range(100)]
    return all(kept) and len(cache) == 100 and sg().caches.MultiModalStaticCache(-1).max_size == -1


@fails("ENCODING-04")
def any_length_is_sliced() -> bool:
    """A chunk is cut out of an embedding of any length: of four rows for five positions, all five are three."""
    return len(sg().schedule.get_embedding_chunk(torch.zeros(4, 1), 1, 4, [(0, 4)])[0]) == 3


@fails("ENCODING-07")
def a_video_twice() -> bool:
    """A video of several spans is encoded once a request, unless the cache has room for it."""
    video = named(1, "VIDEO", offsets=[(0, 0), (2, 2)], feature=torch.zeros(1))
    _, calls = embedded([video], lambda items: column(1, 2), 3, requests=2, cache_bytes=0)
    return len(calls) == 2


@fails("ENCODING-14")
def rows_follow_the_list() -> bool:
    """Rows are put in the order in which the items are listed: listed backwards, two pictures change places."""
    two = [named(2, offsets=[(1, 1)]), named(1, offsets=[(0, 0)])]
    return embedded(two, lambda items: [column(float(one.hash)) for one in items], 2)[0] == [2.0, 1.0]


@fails("ENCODING-16", "ENCODING-17")
def precomputed_beside_raw() -> bool:
    """A precomputed embedding beside a raw picture is encoded, without a feature; in another request it fails the batch.

    One row too many of it is dropped without a word.
    """
    ready = named(1, offsets=[(0, 0)], precomputed_embeddings=column(1))
    raw = named(2, offsets=[(1, 1)], feature=torch.ones(1))
    _, calls = embedded([ready, raw], lambda items: column(1, 2), 2)
    precomputed = sg().schedule._get_precomputed_embedding
    mixed = error(lambda: precomputed([ready, raw], [0, 1, 2], [0, 0], [2, 2], [ready.offsets, raw.offsets]))
    ready.precomputed_embeddings = column(1, 2)
    return ready in calls[0] and mixed == "NotImplementedError" and embedded([ready], column, 1)[0] == [1.0]


@fails("ENCODING-18", "ENCODING-19")
def one_item_fails_the_batch() -> bool:
    """A row too few for one picture fails the whole batch; a row too many is dropped without a word."""
    two = [named(1, offsets=[(0, 1)]), named(2, offsets=[(2, 3)])]
    short = error(lambda: embedded(two, lambda items: [column(1), column(3, 4)], 4))
    surplus, _ = embedded(two, lambda items: [column(1, 2, 9), column(3, 4)], 4)
    return (short, surplus) == ("RuntimeError", [1.0, 2.0, 3.0, 4.0])


@fails("ENCODING-27")
def no_encoder() -> bool:
    """A modality without an encoder is an assertion, which `python -O` takes away."""
    return error(lambda: embedded([named(1, offsets=[(0, 0)])], None, 1)) == "AssertionError"


@fails("MERGING-05")
def ids_are_overwritten() -> bool:
    """The ids are clamped in place, in the tensor of the caller."""
    ids = torch.tensor([5, 10**15])
    sg().utils.embed_mm_inputs([], [], [], ids, torch.nn.Embedding(8, 1))
    return ids.tolist() == [5, 7]


@fails("MERGING-11")
def surplus_rows() -> bool:
    """Of too many rows the last ones are used; where none are wanted, all of them."""
    fit = sg().schedule._adjust_embedding_length
    lengths = [len(fit(column(1, 2, 3), wanted, sg().schedule.logger)) for wanted in (2, 0)]
    return lengths == [2, 3]


@fails("MERGING-09")
def text_is_clamped() -> bool:
    """An id outside the vocabulary at a text position is read as the first or last word."""
    table = torch.nn.Embedding(8, 1, _weight=torch.arange(8.0)[:, None], _freeze=True)
    merged, _ = sg().utils.embed_mm_inputs([], [], [], torch.tensor([-1, 10**15]), table)
    return bool(merged.flatten().tolist() == [0.0, 7.0])


@fails("MERGING-17")
def width_is_asserted() -> bool:
    """A width that does not divide is an assertion, which `python -O` takes away."""
    split = cpu.module("sglang.srt.models.qwen3_vl").Qwen3VLForConditionalGeneration.separate_deepstack_embeds
    model = SimpleNamespace(num_deepstack_embeddings=1, config=SimpleNamespace(hidden_size=4))
    return error(lambda: split(model, torch.zeros(1, 9))) == "AssertionError"


def encoder_info(prefix: int, length: int, encoder_length: int) -> Any:
    """What `prepare_encoder_info_extend` makes of a batch of one request."""
    request = SimpleNamespace(
        multimodal_inputs=SimpleNamespace(num_image_tokens=encoder_length),
        prefix_len=prefix,
        extend_len=length,
        logprob_start_len=-1,
    )
    batch = SimpleNamespace(
        reqs=[request],
        device="cpu",
        forward_mode=cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardMode.EXTEND,
        prefix_lens=[prefix],
        extend_lens=[length],
        extend_num_tokens=length,
        out_cache_loc=torch.arange(length),
        extend_input_logprob_token_ids=None,
    )
    sg().batch.ScheduleBatch.prepare_encoder_info_extend(batch, [array("q", range(length))], [prefix + length])
    return batch


@fails("SCHEDULING-03")
def half_an_encoder_part_in_the_prefix() -> bool:
    """A prefix that holds a part of the encoder part is an assertion without words."""
    whole = encoder_info(4, 5, 4).encoder_cached == [True] and encoder_info(0, 9, 4).encoder_cached == [False]
    return whole and error(lambda: encoder_info(2, 7, 4)) == "AssertionError"


@fails("SCHEDULING-04")
def half_an_encoder_part_in_the_chunk() -> bool:
    """A chunk that ends inside the encoder part is an assertion about a number of KV slots below 0."""
    return error(lambda: encoder_info(0, 3, 4)) == "AssertionError"


def rope_index(
    ids: list[int], images: Any = None, videos: Any = None, family: str = "qwen2_vl", **more: Any
) -> list[list[int]]:
    """The times, rows and columns of ids in which 5 is a picture's, 6 a video's and 9 the start of either."""
    module = cpu.module("sglang.srt.layers.rotary_embedding.mrope_rope_index")
    arguments = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 9, "spatial_merge_size": 2} | more
    grids = [None if grid is None else torch.tensor(grid) for grid in (images, videos)]
    table, _ = module.get_rope_index(
        **arguments, model_type=family, input_ids=torch.tensor([ids]), image_grid_thw=grids[0], video_grid_thw=grids[1]
    )
    columns: list[list[int]] = table[:, 0].tolist()
    return columns


@fails("POSITIONS-08")
def no_grid_is_text() -> bool:
    """A picture whose grid is missing is numbered as text; the second of two is an index out of range."""
    alone = rope_index([1, 9, 5, 5, 5, 5, 10])
    second = error(lambda: rope_index([9, 5, 5, 5, 5, 10, 9, 5, 5, 5, 5, 10], [[1, 4, 4]]))
    return alone == [list(range(7))] * 3 and second == "IndexError"


@fails("POSITIONS-09")
def grid_of_another_size() -> bool:
    """A grid of 2 positions in a span of 4 leaves the rest as text; a larger one takes the text behind the picture."""
    smaller = rope_index([9, 5, 5, 5, 5, 10], [[1, 2, 4]])
    larger = rope_index([9, 5, 5, 10, 1], [[1, 4, 4]])
    return smaller[1] == [0, 1, 1, 3, 4, 5] and larger[1] == [0, 1, 1, 2, 2]


@fails("POSITIONS-10")
def typed_placeholder() -> bool:
    """The first placeholder of a prompt takes the first grid, also when it stands before the picture, in text."""
    return rope_index([5, 1, 9, 5, 5, 5, 5, 10], [[1, 4, 4]])[1] == [0, 0, 1, 1, 2, 3, 4, 5]


@fails("POSITIONS-11")
def pictures_that_touch() -> bool:
    """Pictures are counted by their start tokens, so that one right behind another is numbered as text."""
    return rope_index([9, 5, 5, 5, 5, 10], [[1, 2, 4], [1, 2, 4]])[2] == [0, 1, 2, 3, 4, 5]


@fails("PIPELINE-08")
def start_token_at_the_end() -> bool:
    """A prompt with a picture that ends with the start token, which a user may type, is an index out of range."""
    return error(lambda: rope_index([9, 5, 5, 5, 5, 10, 1, 9], [[1, 4, 4]])) == "IndexError"


@fails("POSITIONS-12")
def a_second_by_default() -> bool:
    """A video whose seconds are missing takes 1 second a frame."""
    ids = [9, 6, 6, 10]
    missing = rope_index(ids, None, [[2, 2, 2]], "qwen2_5_vl", tokens_per_second=4)
    return missing == rope_index(ids, None, [[2, 2, 2]], "qwen2_5_vl", tokens_per_second=4, second_per_grid_ts=[1.0])


@fails("POSITIONS-16", "POSITIONS-18")
def reply_behind_a_picture() -> bool:
    """The reply to a prompt that ends with a picture goes on behind its time, among its rows and columns."""
    table = torch.tensor([[0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 2, 3]])
    return bool(sg().utils.extend_mrope_positions_for_retracted_request(table, 1)[0, -1] == 2)


@fails("PLANNING-04")
def columns_lost_to_a_float() -> bool:
    """LLaVA-NeXT loses two columns of patches where 55 * (24 / 88) is a little less than 15 in floating point."""
    sg()
    shapes = cpu.module("sglang.srt.multimodal.mm_utils")
    return bool(shapes.unpad_image_shape(24, 48, (55, 88)) == (24, 14))


@fails("PLANNING-06")
def ten_tiles_for_a_small_square() -> bool:
    """InternVL cuts a picture of 100 x 100 pixels into 3 x 3 tiles and a thumbnail: the largest canvas of its shape."""
    sg()
    processor = cpu.module("sglang.srt.multimodal.processors.internvl").InternVLProcessor
    return len(processor.dynamic_preprocess(torch.zeros(3, 100, 100), image_size=14, use_thumbnail=True)) == 10


@fails("POSITIONS-24")
def text_behind_the_last_piece() -> bool:
    """Text behind a video with its recording goes on behind the last piece of the two, among the video's 7 rows."""
    frame = [6] * 7
    heard = {
        "audio_token_id": 4,
        "audio_start_token_id": 11,
        "position_id_per_seconds": 4,
        "use_audio_in_video": True,
        "audio_seqlens": torch.tensor([24]),
        "second_per_grid_ts": torch.tensor([0.25]),
    }
    ids = [9, 11, *frame, 4, *frame, 4, 4, 12, 10, 1]
    rows = rope_index(ids, None, [[2, 14, 2]], "qwen3_omni_moe", **heard)[1]
    return (max(rows[:-3]), rows[-3]) == (8, 5)


@fails("PRUNING-02")
def rate_in_binary() -> bool:
    """A rate of 0.9 leaves one token of twenty: the count is truncated in floating point."""
    return bool(evs().evs_core.compute_retained_tokens_count(1, 20, 0.9) == 1)


@fails("PRUNING-03")
def rate_is_asserted() -> bool:
    """A rate that is no share is an assertion, which `python -O` takes away."""
    return error(lambda: evs().EVSConfig(video_pruning_rate=1.0)) == "AssertionError"


@fails("PRUNING-05")
def zeros_go_before_the_first_frame() -> bool:
    """Tokens of zeros in half precision have the cosine NaN, which is sorted before the 255 of the first frame."""
    video = torch.tensor([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]], dtype=torch.float16)
    return not evs().evs_core.compute_retention_mask(video, (3, 1, 2), 1, 0.5)[:2].all()


@fails("PRUNING-19", "PRUNING-20", "PRUNING-21", "PRUNING-22")
def pruned_video_of_one_span() -> bool:
    """A pruned video in one span takes the path of pictures, which knows no pruned result."""
    return error(lambda: pruned([(1, 4)], [3, 1], requests=1)) == "AttributeError"


@fails("PRUNING-19")
def pruned_video_beside_another_request() -> bool:
    """A pruned video is laid out only in a batch of one request: the ids of the batch are taken for its own."""
    alone = error(lambda: pruned([(1, 2), (4, 5)], [3, 1], requests=1))
    return (alone, error(lambda: pruned([(1, 2), (4, 5)], [3, 1], requests=2))) == ("", "AssertionError")


@fails("PRUNING-20")
def pruned_video_between_two_chunks() -> bool:
    """A chunk between the spans of the estimate is taken for text, where the mask put a token of the video."""
    spans = [(1, 2), (4, 5)]
    video = named(1, "VIDEO", offsets=spans, model_specific_data={"pre_chunked_input_ids": array("q", range(7))})
    result = evs().EVSEmbeddingResult(embedding=column(1, 2, 3, 4), num_tokens_per_frame=[3, 1])
    rows: list[float] = []
    for first, length in ((0, 3), (3, 1), (4, 3)):
        with patch.object(sg().schedule, "embedding_cache", sg().caches.MultiModalStaticCache(0)):
            found, _ = sg().schedule._get_chunked_prefill_embedding(
                lambda made: result, [video], [0, 1], [first], [length], [spans], torch.arange(first, first + length)
            )
        rows += [] if found is None else found.flatten().tolist()
    return rows == [1.0, 2.0, 4.0]


@fails("PRUNING-24")
def one_pruned_video_ends_the_batch() -> bool:
    """An error of the encoder of one request with a pruned video leaves the batch without any rows."""
    video = named(
        1, "VIDEO", feature=torch.zeros(3, 1), offsets=[(0, 1), (3, 4)], model_specific_data={"thw_grids": [(2, 1, 2)]}
    )
    model = SimpleNamespace(
        evs_config=evs().EVSConfig(video_pruning_rate=0.5), original_get_video_feature=lambda made: made[0].feature
    )
    return error(lambda: embedded([video], lambda made: evs().EVS.evs_video(model, made), 5, requests=2)) == "RuntimeError"


def evs() -> Any:
    sg()
    return cpu.module("sglang.srt.multimodal.evs")


def pruned(spans: list[tuple[int, int]], counts: list[int], *, requests: int) -> list[float]:
    """What `embed_mm_inputs` makes of a prompt of seven ids with a video of two frames that keep these counts."""
    video = named(1, "VIDEO", offsets=spans, model_specific_data={})
    video.set("pre_chunked_input_ids", array("q", padded(7, video)))
    result = evs().EVSEmbeddingResult(embedding=column(1, 2, 3, 4), num_tokens_per_frame=counts)
    return embedded([video], lambda made: result, 7, requests=requests)[0]


@fails("PIPELINE-09")
def surplus_pictures() -> bool:
    """A picture for which the prompt has no placeholder is left out, with a line in the log."""
    processors = cpu.module("sglang.srt.multimodal.processors.base_processor")
    tokens = processors.MultimodalSpecialTokens(image_token="<image>")
    with ThreadPoolExecutor(1) as pool:
        loader = type("Loader", (), {"io_executor": pool, "_load_single_item": staticmethod(lambda *arguments: None)})()
        loaded, _ = processors.BaseMultimodalProcessor.submit_data_loading_tasks(
            loader, ["Look: ", "<image>"], tokens, {sg().batch.Modality.IMAGE: iter(["one", "other"])}
        )
    return len(loaded) == 1


def shown(picture: Image.Image, format: str = "PNG", **options: Any) -> np.ndarray:
    """The pixels that most models are shown of this picture."""
    file = BytesIO()
    picture.save(file, format, **options)
    processors = cpu.module("sglang.srt.multimodal.processors.base_processor")
    loaded = processors.BaseMultimodalProcessor._load_single_item(file.getvalue(), sg().batch.Modality.IMAGE)
    return np.array(loaded)


@fails("MEDIA-03")
def orientation() -> bool:
    """Most models are shown a picture as it was stored, whatever its EXIF orientation."""
    notes = Image.Exif()
    notes[0x0112] = 6
    return shown(Image.new("RGB", (24, 16)), "JPEG", exif=notes).shape == (16, 24, 3)


@fails("MEDIA-04")
def hidden_colour() -> bool:
    """Most models are shown the colour that was stored under a transparent pixel."""
    return bool((shown(Image.new("RGBA", (1, 1), (200, 100, 50, 0))) == (200, 100, 50)).all())


@fails("MEDIA-05", "MEDIA-07")
def sixteen_bits() -> bool:
    """Grey of 16 bits is cut off at 255: what is dark is white."""
    return bool((shown(Image.new("I;16", (1, 1), 0x2000)) == 255).all())


@fails("MEDIA-10")
def header_without_rows() -> bool:
    """A PNG with one row of the two that its header promises is filled up with black."""
    rows = zlib.compress(b"\0\xff")
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 2, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    body = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks]
    picture, _ = cpu.module("sglang.srt.utils.common").load_image(b"\x89PNG\r\n\x1a\n" + b"".join(body), False)
    return list(picture.tobytes()) == [255, 0]


@fails("MEDIA-11")
def pixel_limit() -> bool:
    """There is no limit of pixels: 64 million of them, in a file of some kilobytes, are decoded."""
    return shown(Image.new("1", (8000, 8000))).shape == (8000, 8000, 3)


@fails("MEDIA-13")
def address() -> bool:
    """The refusal of what is no picture shows the memory address of a buffer."""
    try:
        cpu.module("sglang.srt.utils.common").load_image(b"not an image", False)
    except ValueError as refusal:
        return " at 0x" in str(refusal)
    return False


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


def frames_shown(total: int, own_rate: float, rate: float, most: int = 100) -> int:
    """How many frames of a video of so many are shown at this rate, two at least."""
    config = {"fps": rate, "max_frames": most, "min_frames": 2}
    return int(cpu.module("sglang.srt.multimodal.processors.qwen_vl").smart_nframes(config, total, own_rate))


@fails("MEDIA-32", "MEDIA-34", "MEDIA-36")
def one_frame_is_no_video() -> bool:
    """A video of one frame, and a limit of one frame, are refused: 2 is the smallest number."""
    return {error(lambda: frames_shown(1, 25.0, 2.0)), error(lambda: frames_shown(9, 9.0, 2.0, 1))} == {"ValueError"}


@fails("MEDIA-37")
def rates_are_not_checked() -> bool:
    """A video without a rate of its own is a division by zero; a negative or endless rate is taken."""
    rates = [frames_shown(100, -25.0, 2.0), frames_shown(100, float("inf"), 2.0), frames_shown(100, 25.0, 0.0)]
    return (error(lambda: frames_shown(100, 0.0, 2.0)), rates) == ("ZeroDivisionError", [2, 2, 2])


def registry() -> Any:
    sg()
    return cpu.module("sglang.srt.managers.multimodal_processor")


@fails("PROCESSORS-22")
def the_registry_decides() -> bool:
    """Of two architectures the one that was registered first is served, not the one that the checkpoint names first."""
    known = {type("First", (), {}): "first", type("Last", (), {}): "last"}
    with patch.dict(registry().PROCESSOR_MAPPING, known, clear=True):
        return bool(registry().get_mm_processor_cls(SimpleNamespace(architectures=["Last", "First"])) == "first")


@fails("PROCESSORS-24")
def a_broken_module_is_unknown() -> bool:
    """A processor whose module cannot be imported is not registered; why, stands in the log alone."""
    known = registry()
    with (
        TemporaryDirectory() as folder,
        patch.object(sys, "path", [folder, *sys.path]),
        patch.dict(sys.modules),
        patch.dict(known.PROCESSOR_MAPPING, clear=True),
    ):
        (Path(folder) / "processors_of_a_check").mkdir()
        (Path(folder) / "processors_of_a_check" / "broken.py").write_text("from os import AutoTensor")
        known.import_processors("processors_of_a_check")
        try:
            known.get_mm_processor(SimpleNamespace(architectures=["Broken"]), None, None, "default")
        except ValueError as refusal:
            return "AutoTensor" not in str(refusal)
    return False


def draft_embeddings(ids: list[int], embeddings: torch.Tensor) -> torch.Tensor:
    """What an EAGLE-3 draft model makes of ids and the rows of the target, all of which its last token replaces."""
    mode = cpu.module("sglang.srt.model_executor.forward_batch_info").ForwardMode.EXTEND
    taken: list[torch.Tensor] = []

    def layer(positions: Any, embeds: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None]:
        taken.append(embeds)
        return embeds, None

    model = SimpleNamespace(
        embed_tokens=torch.nn.Embedding(8, 1, _weight=torch.arange(8.0)[:, None], _freeze=True),
        is_mrope_enabled=False,
        layers=[layer],
        norm=lambda states, residual: (states, states),
        norm_output=False,
    )
    batch = SimpleNamespace(
        forward_mode=mode,
        mm_input_embeds=embeddings,
        contains_mm_inputs=lambda: True,
        extend_start_loc=torch.tensor([0]),
        extend_seq_lens=torch.tensor([len(ids)]),
        spec_info=SimpleNamespace(hidden_states=torch.zeros(1, 1)),
    )
    cpu.module("sglang.srt.models.llama_eagle3").LlamaModel.forward(model, torch.tensor(ids), None, batch)
    return taken[0]


@fails("SPECULATION-04", "SPECULATION-05")
def a_medium_behind_a_chunk_is_not_fed() -> bool:
    """Where a medium's token comes next, the draft takes what the target has sampled in the middle of the prompt."""
    request = SimpleNamespace(extend_end=2, origin_input_ids=array("q", [1, 2, 10**15, 3]))
    batch = SimpleNamespace(
        chunked_req=request,
        reqs=[request],
        input_ids=torch.tensor([1, 2]),
        chunked_req_next_prompt_token=sg().batch._compute_chunked_req_next_prompt_token(request, 8),
    )
    tails = cpu.module("sglang.srt.speculative.eagle_utils")._eagle_prefill_tail_tokens(batch, torch.tensor([7]))
    return bool(tails.tolist() == [7])


@fails("SPECULATION-06")
def a_sampled_sentinel() -> bool:
    """A sampled id outside the draft's vocabulary is an index out of range."""
    return error(lambda: draft_embeddings([1, 10**15], column(1, 2))) == "IndexError"


if __name__ == "__main__":
    others = (check_requests, check_parallel, check_disaggregation, check_transport)
    sys.exit(Checks([*CHECKS, *(one for module in others for one in module.CHECKS)]).run())
