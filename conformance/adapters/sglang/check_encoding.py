"""What SGLang 0.5.23 gets wrong between the encoder and the language model: seen without the suite."""

from array import array
from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import column, embedded, named, sg

CHECKS = Checks()
fails = CHECKS.fails


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
