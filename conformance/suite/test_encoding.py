"""ENCODING: the embeddings of the media in one step of a batch."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import torch

from conformance.cases import Exact
from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.oracles import encoding as oracle
from conformance.oracles.encoding import Batch
from conformance.requirement import SHOULD, requirement
from conformance.suite.encoding_cases import (
    BATCHES,
    CHUNKINGS,
    COUNTS,
    CUTS,
    DUPLICATES,
    LENGTHS,
    ORDERS,
    OUTSIDE,
    READY,
    SEVERAL,
    SILENT,
    SLICES,
    WRONG_ROWS,
    Chunked,
    Rows,
)  # fmt: skip
from conformance.suite.encoding_checks import rows_of, serves, serves_in_conflict
from conformance.world.doubles import CountingEncoder, Encoders, encoded, medium
from reference.items import Chunk, Modality, Span


@requirement("ENCODING-01", needs="count_in_chunk", cases=COUNTS, bugs=("emb-cache-length-check-on-hit", "Z05"))
def test_the_media_in_a_chunk_are_counted(engine: Engine, case: Exact) -> None:
    """The number of media positions in a chunk MUST count every position of every span that lies in it, ends included."""
    spans, chunk = case.given
    equal(engine.count_in_chunk(spans, chunk), case.expected, f"the positions of {spans} in {chunk}")


@requirement("ENCODING-02", needs="slice_chunk", cases=SLICES, bugs=("chunked-prefill-old-merge-shape", "E03", "Z03"))
def test_a_chunk_gets_its_own_rows(engine: Engine, case: Exact) -> None:
    """The rows of an item in a chunk MUST be those of its positions in the chunk, and no others."""
    spans, chunk = case.given
    count = len(oracle.positions(spans))
    observed = engine.slice_chunk(numbered(count), spans, chunk)
    equal(observed, numbered(count)[case.expected], f"the rows of {spans} in {chunk}", where="row {}".format)


@requirement(
    "ENCODING-03", needs="slice_chunk", cases=CUTS, bugs=("chunked-prefill-old-merge-shape", "ollama-image-split-batches")
)
def test_the_slices_of_all_chunks_make_the_whole(engine: Engine, case: tuple[tuple[Span, ...], list[int]]) -> None:
    """However a prompt is cut into chunks, the rows of an item in all of them together MUST be its embedding."""
    spans, lengths = case
    embedding = numbered(len(oracle.positions(spans)))
    chunks = [Chunk(sum(lengths[:number]), length) for number, length in enumerate(lengths)]
    observed = torch.cat([engine.slice_chunk(embedding.clone(), spans, chunk) for chunk in chunks])
    equal(observed, embedding, f"the rows of {len(chunks)} chunks together", where="row {}".format)


@requirement("ENCODING-04", level=SHOULD, needs="slice_chunk", cases=WRONG_ROWS, bugs=("L11",))
def test_an_embedding_of_another_length_is_not_sliced(engine: Engine, case: Rows) -> None:
    """An embedding that has not one row for each position of its item SHOULD be refused: its rows would belong elsewhere."""
    chunk = Chunk(0, case.spans[-1].stop)
    count = len(oracle.positions(case.spans))
    refuses(lambda: engine.slice_chunk(numbered(case.rows), case.spans, chunk), f"{case.rows} rows for {count} positions")


@requirement(
    "ENCODING-05", needs="encode", cases=BATCHES, bugs=("Q03", "Q06", "chunk-batch-mixed-runtime", "concurrent-images-crash")
)
def test_every_request_gets_its_own_rows(engine: Engine, case: Batch) -> None:
    """Every request MUST get the rows of the media in its chunk, whatever else is in the batch."""
    serves(engine.encode(case, Encoders(), None), case)


@requirement("ENCODING-06", needs="encode", cases={**BATCHES, **SILENT}, bugs=("chunk-batch-mixed-runtime", "Q03", "Q04"))
def test_the_order_of_a_batch_does_not_matter(engine: Engine, case: Batch) -> None:
    """A request MUST get the same rows wherever it stands in the batch."""
    for batch in permutations(case):
        serves(engine.encode(batch, Encoders(), None), batch)


@requirement(
    "ENCODING-07",
    level=SHOULD,
    needs="encode",
    cases=DUPLICATES,
    bugs=("enc-cache-dup-in-one-step", "enc-cache-dup-item-in-request"),
)
def test_an_item_is_encoded_once(engine: Engine, case: Batch) -> None:
    """Items of a batch with the same identity and token count SHOULD be encoded once, and all of them MUST be served."""
    encoders = Encoders()
    serves(engine.encode(case, encoders, None), case)
    equal(sorted(encoders.seen), sorted(set(encoders.seen)), "the items that were encoded")


@requirement("ENCODING-08", needs="encode", cases=SEVERAL, level=SHOULD)
def test_items_are_encoded_together(engine: Engine, case: Batch) -> None:
    """All items of a modality that a batch needs SHOULD go to the encoder in one call."""
    encoders = Encoders()
    engine.encode(case, encoders, None)
    several = [f"{len(one.calls)} calls for {modality.name}" for modality, one in encoders.items() if len(one.calls) > 1]
    equal(several, [], "the modalities whose encoder was called more than once")


@requirement("ENCODING-09", level=SHOULD, needs="encode", cases=SEVERAL)
def test_items_are_encoded_in_order(engine: Engine, case: Batch) -> None:
    """The items of a modality SHOULD be encoded in order of first appearance, by request and then by position.

    The ranks of a parallel encoder see the same batch, and must compute the same item at the same time.
    """
    encoders = Encoders()
    engine.encode(case, encoders, None)
    equal(encoders.seen, oracle.needed(case), "the items that were encoded, by modality", where="item {}".format)


@requirement("ENCODING-10", needs="encode", cases=LENGTHS, bugs=("E02",))
def test_items_of_different_lengths_are_never_merged(engine: Engine, case: Batch) -> None:
    """Items with the same identity and different token counts MUST NOT be given each other's rows.

    They get their own, or their requests fail where `Traits.length_conflicts` says so.
    """
    serves_in_conflict(engine.encode(case, Encoders(), None), case, engine)


@requirement("ENCODING-11", level=SHOULD, needs="encode", cases=OUTSIDE, bugs=("E04",))
def test_items_outside_the_chunk_are_not_encoded(engine: Engine, case: Batch) -> None:
    """An item that has no position in its chunk SHOULD NOT be encoded."""
    encoders = Encoders()
    serves(engine.encode(case, encoders, None), case)
    equal(sorted(encoders.seen), sorted(oracle.needed(case)), "the items that were encoded")


@requirement(
    "ENCODING-12",
    needs="encode",
    cases=CHUNKINGS,
    bugs=("chunked-prefill-old-merge-shape", "E03", "Z03", "ollama-image-split-batches"),
)
def test_any_chunking_equals_no_chunking(engine: Engine, case: Chunked) -> None:
    """However a prompt is cut into chunks, the rows of all of them together MUST be those of the prompt in one piece."""
    parts = [rows_of(engine.encode([(case.request, chunk)], Encoders(), None)[0]) for chunk in case.chunks]
    observed = torch.cat([rows for rows in parts if len(rows)])
    expected = oracle.expected(case.request, Chunk(0, len(case.request.input_ids)))
    equal(observed, expected, f"the rows of {len(parts)} chunks together", where="row {}".format)


@requirement("ENCODING-13", needs="encode", cases=SEVERAL, bugs=("concurrent-images-crash", "L11"))
def test_rows_may_come_in_one_tensor(engine: Engine, case: Batch) -> None:
    """An encoder MUST be free to return one tensor an item or the rows of all items in one tensor."""
    serves(engine.encode(case, Encoders(list), None), case)
    serves(engine.encode(case, Encoders(torch.cat), None), case)


@requirement("ENCODING-14", needs="encode", cases=ORDERS, bugs=("Q01", "Q02", "omni-interleaved-scatter-misalign"))
def test_rows_are_ordered_by_position(engine: Engine, case: Batch) -> None:
    """The rows of a request MUST follow the positions of the prompt, over all modalities, spans and orders of its items."""
    serves(engine.encode(case, Encoders(), None), case)


@requirement("ENCODING-15", needs="encode", cases=SILENT, bugs=("Q06", "Z04"))
def test_a_chunk_of_text_gets_no_rows(engine: Engine, case: Batch) -> None:
    """A request without media in its chunk MUST get 0 rows: no error, and nobody else's."""
    serves(engine.encode(case, Encoders(), None), case)


@requirement("ENCODING-16", needs="encode", cases=READY, bugs=("E03",))
def test_precomputed_embeddings_are_used_as_they_are(engine: Engine, case: Batch) -> None:
    """A precomputed embedding MUST be used like encoded rows and MUST NOT be encoded, also beside items that are."""
    encoders = Encoders()
    serves(engine.encode(case, encoders, None), case)
    equal(sorted(encoders.seen), sorted(oracle.needed(case)), "the items that were encoded")


MODALITIES = {modality.name.lower(): modality for modality in Modality}


@requirement("ENCODING-25", needs="find_encoder", cases=MODALITIES)
def test_the_registered_encoder_is_used(engine: Engine, case: Modality) -> None:
    """The encoder registered for a modality MUST be used, also where the model has a method of the conventional name."""
    registered, conventional = Encoders(), CountingEncoder()
    model = SimpleNamespace(**{f"get_{name}_feature": conventional for name in MODALITIES})
    _used(engine.find_encoder(case, registered, model), case)
    equal([len(conventional.calls), len(registered[case].calls)], [0, 1], "the calls of the model's and the registered encoder")


@requirement("ENCODING-26", needs="find_encoder", cases=MODALITIES)
def test_the_model_is_asked_by_convention(engine: Engine, case: Modality) -> None:
    """Where no encoder is registered, `get_image_feature`, `get_video_feature` or `get_audio_feature` MUST be used."""
    conventional = {name: CountingEncoder() for name in MODALITIES}
    model = SimpleNamespace(**{f"get_{name}_feature": encoder for name, encoder in conventional.items()})
    others = {modality: CountingEncoder() for modality in Modality if modality is not case}
    _used(engine.find_encoder(case, others, model), case)
    equal(
        [name for name, encoder in conventional.items() if encoder.calls], [case.name.lower()], "the methods that were called"
    )


@requirement("ENCODING-27", needs="find_encoder", cases=MODALITIES, bugs=("G11",))
def test_a_modality_without_encoder_is_refused(engine: Engine, case: Modality) -> None:
    """A modality for which there is no encoder MUST be refused, whatever encoders there are for other modalities."""
    others = {modality: CountingEncoder() for modality in Modality if modality is not case}
    model = SimpleNamespace(**{f"get_{name}_feature": CountingEncoder() for name in MODALITIES if name != case.name.lower()})
    refuses(lambda: engine.find_encoder(case, others, model), f"a model without an encoder for {case.name.lower()}")
    refuses(lambda: engine.find_encoder(case, {}, SimpleNamespace()), f"a model without any encoder, for {case.name.lower()}")


def numbered(count: int) -> torch.Tensor:
    """`count` rows that are told apart by their numbers."""
    return torch.arange(count, dtype=torch.float32)[:, None] + torch.tensor([0.0, 0.25])


def _used(found: Any, modality: Modality) -> None:
    item = medium(modality, 1, (0, 4))
    equal(found([item])[0], encoded(item), "the rows from the encoder that was found", where="row {}".format)
