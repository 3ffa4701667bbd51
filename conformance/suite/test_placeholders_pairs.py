"""PLACEHOLDERS, padding by token pairs: the model's processor marks where each picture and each of its slices lie."""

import numpy as np

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles import placeholders as oracle
from conformance.requirement import SGLANG, requirement
from conformance.world.prompts import Pairing, draw

FLAT = {
    "one-picture": ".<iiiii>.",
    "two-pictures": "<iii>..<jj>.",
    "side-by-side": "<iii><jjjjj>",
    "one-position": "<i>",
    "empty-and-full": ".<><ii>.",
}
SLICED = {
    "slices": ".<iiii>[iiiiii][ii].",
    "slices-of-two-pictures": "<iii>[ii].[i]<jjj>[jj][jj].",
    "second-without-slices": "<i>[iiiii]<jjjj>.",
    "empty-slice": "<ii>[][iii].",
    "empty-picture-with-a-slice": "<>[jj].",
}
PAIRED = FLAT | SLICED
LISTED = {"empty-and-full": "ki", "empty-picture-with-a-slice": "j"}
WITHOUT_PAIRS = {"no-pair": "....", "empty-prompt": "", "placeholder-without-pair": ".##."}


def pairing(drawing: str, listed: str | None = None) -> Pairing:
    """The question that a drawing puts; the items in `listed` do not need a place in it."""
    return Pairing(*draw(drawing, listed))


GOOD = {name: pairing(drawing, LISTED.get(name)) for name, drawing in (PAIRED | WITHOUT_PAIRS).items()}
BAD = {
    "start-without-end": pairing("<ii>.<jj", "ij"),
    "end-without-start": pairing("<ii>.jj>", "ij"),
    "end-before-start": pairing(".>ii<.", "i"),
    "nested": pairing("<i<jj>i>", "ij"),
    "crossed": pairing("<ii[ii>ii]", "i"),
    "slice-inside-the-picture": pairing("<i[i]i>", "i"),
    "end-of-the-other-pair": pairing("<ii].", "i"),
    "slice-before-any-item": pairing("[ii].<jj>", "j"),
    "slices-only": pairing(".[ii].", "i"),
    "more-starts-than-items": pairing("<ii>.<jj>", "i"),
    "fewer-starts-than-items": pairing("<ii>..", "ij"),
    "pairs-without-items": pairing(".<..>.", ""),
    "items-without-pairs": pairing("....", "i"),
    "user-typed-pair": pairing(".<.>.<ii>.", "i"),
    "user-typed-start": pairing(".<..<ii>.", "i"),
    "user-typed-end": pairing("..>.<ii>.", "i"),
}


@requirement(
    "PLACEHOLDERS-11", needs=("pad_pairs", "pad_spans"), cases={name: GOOD[name] for name in PAIRED}, bugs=("P05", "O08")
)
def test_padding_by_pairs_equals_padding_by_spans(engine: Engine, case: Pairing) -> None:
    """Padding by token pairs MUST equal padding by the spans that lie between them."""
    expected = engine.pad_spans(case.input_ids.copy(), case.items)
    equal(engine.pad_pairs(case.input_ids.copy(), *case[1:]), expected, "the ids padded by pairs")


@requirement("PLACEHOLDERS-12", needs="pad_pairs", cases={name: GOOD[name] for name in SLICED}, bugs=("P05", "O05"))
def test_a_slice_belongs_to_the_item_that_began_last(engine: Engine, case: Pairing) -> None:
    """A slice MUST be padded as the item that began last before it is when it stands alone."""
    observed = engine.pad_pairs(case.input_ids.copy(), *case[1:])
    for item in case.items:
        for span in item.spans:
            alone = np.array([1, *[11] * len(span), 2], dtype=np.int64)
            expected = engine.pad_pairs(alone, (item,), *case[2:])[1:-1]
            equal(observed[span.first : span.last + 1], expected, f"the slice {span}", where="position {} of it".format)


@requirement("PLACEHOLDERS-13", needs="pad_pairs", cases=GOOD)
def test_padding_by_pairs_leaves_text_and_pair_tokens(engine: Engine, case: Pairing) -> None:
    """Padding by token pairs MUST keep the length of a prompt, its text and the pair tokens themselves."""
    observed = engine.pad_pairs(case.input_ids.copy(), *case[1:])
    equal(len(observed), len(case.input_ids), "the length of the padded prompt")
    text = oracle.text_positions(len(observed), case.items)
    equal(observed[text], case.input_ids[text], "the ids of text", where=lambda n: f"position {text[n]}")


@requirement("PLACEHOLDERS-14", needs="pad_pairs", cases=GOOD, bugs=("Q05",))
def test_padding_by_pairs_does_not_touch_the_callers_ids(engine: Engine, case: Pairing) -> None:
    """Padding by token pairs MUST return a new array and leave the caller's as it was, also where nothing is padded."""
    ids = case.input_ids.copy()
    observed = engine.pad_pairs(ids, *case[1:])
    equal(ids, case.input_ids, "the caller's ids after padding")
    holds(not np.shares_memory(observed, ids), "the padded ids share the memory of the caller's ids")


@requirement(
    "PLACEHOLDERS-15",
    needs="pad_pairs",
    cases=BAD,
    bugs=("P05", "O01", "O02", "audio-literal-added-twice", "text-only-vision-tokens-crash"),
)
def test_tokens_that_do_not_pair_up_are_refused(engine: Engine, case: Pairing) -> None:
    """Pair tokens that do not pair up, or that begin another number of items than the request has, MUST be refused.

    Any guess would bind a picture to a place that is not its own.
    """
    ids = case.input_ids.tolist()
    refuses(lambda: engine.pad_pairs(case.input_ids.copy(), *case[1:]), f"{ids} with {len(case.items)} items")


@requirement(
    "PLACEHOLDERS-16",
    needs="pad_pairs",
    profile=SGLANG,
    cases={name: Exact(GOOD[name], oracle.padded(*GOOD[name][:2])) for name in PAIRED},
)
def test_ids_padded_by_pairs_have_the_exact_values(engine: Engine, case: Exact) -> None:
    """Ids padded by token pairs MUST equal SGLang's: the four sentinels in turn, from the first one on in every slice."""
    equal(engine.pad_pairs(case.given.input_ids.copy(), *case.given[1:]), case.expected, "the padded ids")
