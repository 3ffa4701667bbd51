"""PLACEHOLDERS: where the media of a prompt stand, and their padding with sentinels."""

import numpy as np

from conformance.cases import Exact, Pair
from conformance.compare import differ, equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles import placeholders as oracle
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.world.prompts import BadSpans, Prompt, draw, picture
from reference.items import Item, Span

SEARCHES = {
    "text-only": ".....",
    "between-text": "..iii..ii.",
    "at-the-start": "ii..",
    "at-the-end": "..ii",
    "at-both-ends": "i.i",
    "longer-at-both-ends": "ii.iii.i",
    "nothing-else": "iii",
    "one-position": "i",
    "empty-prompt": "",
    "other-media-beside-it": "ivvi.aai",
}
PROMPTS = {
    "text-only": draw("....."),
    "one-picture": draw("..iiiii.."),
    "several-spans": draw(".vvvvvv.vvv.v."),
    "all-modalities": draw("ii.vv.v.aaaaa"),
    "side-by-side": draw("iijjjvv"),
    "listed-in-another-order": draw(".ii.vv.jjj.", listed="jvi"),
    "literal-before": draw(".#.iii.."),
    "literals-around": draw("#.iii.##"),
    "literal-beside-the-span": draw("#iii#."),
    "nothing-but-media": draw("iiiiiiiii"),
    "empty-prompt": draw(""),
}
WITH_MEDIA = {name: prompt for name, prompt in PROMPTS.items() if prompt.items}


NAMED = Prompt(draw(".iiiiii.ii").input_ids, (picture("i", (Span(1, 6), Span(8, 9)), caller_hash=1),))


OVERLAPPING = {
    "overlap": BadSpans(8, (picture("i", (Span(1, 3),)), picture("v", (Span(3, 5),)))),
    "overlap-in-another-order": BadSpans(8, (picture("i", (Span(3, 5),)), picture("v", (Span(1, 3),)))),
    "one-inside-another": BadSpans(8, (picture("i", (Span(0, 6),)), picture("a", (Span(2, 3),)))),
    "the-same-span-twice": BadSpans(8, (picture("i", (Span(1, 3),)), picture("j", (Span(1, 3),)))),
}
OUTSIDE = {
    "one-position-too-far": BadSpans(8, (picture("i", (Span(6, 8),)),)),
    "begins-past-the-end": BadSpans(8, (picture("i", (Span(9, 9),)),)),
    "empty-prompt": BadSpans(0, (picture("i", (Span(0, 0),)),)),
}


@requirement(
    "PLACEHOLDERS-01",
    needs="find_spans",
    cases={name: Exact((draw(d).input_ids, 11), oracle.runs(draw(d).input_ids.tolist(), 11)) for name, d in SEARCHES.items()},
)
def test_every_run_of_the_placeholder_is_found(engine: Engine, case: Exact) -> None:
    """The spans of a placeholder id MUST be its maximal runs by position, also where a prompt begins or ends with one."""
    observed = engine.find_spans(*case.given)
    equal(observed, case.expected, "the spans", where="span {}".format)


@requirement(
    "PLACEHOLDERS-02",
    needs="pad_spans",
    cases=PROMPTS,
    bugs=("O02", "O03", "text-literal-placeholder-steals-binding", "llamacpp-marker-in-text", "preexpanded-double-expansion"),
)
def test_padding_leaves_text_as_it_was(engine: Engine, case: Prompt) -> None:
    """Padding MUST keep the length of a prompt and every id outside the recorded spans, placeholder ids included."""
    observed = engine.pad_spans(case.input_ids.copy(), case.items)
    equal(len(observed), len(case.input_ids), "the length of the padded prompt")
    text = oracle.text_positions(len(observed), case.items)
    equal(observed[text], case.input_ids[text], "the ids of text", where=lambda n: f"position {text[n]}")


@requirement("PLACEHOLDERS-03", needs="pad_spans", cases=PROMPTS, bugs=("Q05",))
def test_padding_does_not_touch_the_callers_ids(engine: Engine, case: Prompt) -> None:
    """Padding MUST return a new array and leave the caller's as it was, also for a prompt without media."""
    ids = case.input_ids.copy()
    observed = engine.pad_spans(ids, case.items)
    equal(ids, case.input_ids, "the caller's ids after padding")
    holds(not np.shares_memory(observed, ids), "the padded ids share the memory of the caller's ids")


@requirement(
    "PLACEHOLDERS-04",
    needs="pad_spans",
    cases={
        "same-modality": Pair(draw(".iiiiiiiii.ii."), draw(".jjjjjjjjj.jj.")),
        "another-modality": Pair(draw(".iiiii."), draw(".vvvvv.")),
        "second-item-only": Pair(draw(".iii.jjj."), draw(".iii.kkk.")),
        "another-order": Pair(draw(".iii.jjj."), draw(".jjj.iii.")),
    },
    bugs=("H06", "H07", "H10", "prefix-image-blind", "lmcache-token-only-key"),
)
def test_different_items_differ_at_every_position(engine: Engine, case: Pair) -> None:
    """The padding of two items with different identities MUST differ at every one of their positions.

    A prefix cache compares ids from the left, and a match may stop after any of them.
    """
    one, other = (engine.pad_spans(prompt.input_ids.copy(), prompt.items) for prompt in case)
    owners = [[p.items[k].identity if k is not None else None for k in oracle.owners(len(one), p.items)] for p in case]
    for position in (n for n, (a, b) in enumerate(zip(*owners, strict=True)) if a != b):
        differ(one[position], other[position], f"the ids of two items at position {position}")


@requirement("PLACEHOLDERS-05", needs=("pad_spans", "sentinels"), cases=WITH_MEDIA, bugs=("O05", "Q01", "Q03"))
def test_a_span_cycles_through_the_sentinels_of_its_own_item(engine: Engine, case: Prompt) -> None:
    """Every span MUST be filled with the sentinels of its own item in turn, from the first one on."""
    observed = engine.pad_spans(case.input_ids.copy(), case.items)
    for item in case.items:
        values = engine.sentinels(item.identity or b"")
        for span in item.spans:
            expected = np.array([values[step % len(values)] for step in range(len(span))], dtype=np.int64)
            ids = observed[span.first : span.last + 1]
            equal(ids, expected, f"the ids of {span}", where="position {} of the span".format)


def _stands_for_the_item(engine: Engine, ids: np.ndarray, one: Item, other: Item, renamed: Item) -> None:
    first, second, third = (engine.pad_spans(ids.copy(), (item,)) for item in (one, other, renamed))
    equal(second, first, "the ids of two items that the caller knows by the same hash")
    for position in oracle.media_positions(len(ids), (one,)):
        differ(first[position], third[position], f"the ids of two items that the caller knows by two hashes, at {position}")


def _is_refused(engine: Engine, ids: np.ndarray, one: Item, other: Item, renamed: Item) -> None:
    refuses(lambda: engine.pad_spans(ids.copy(), (one,)), f"an item that the caller knows by the hash {one.caller_hash}")


CALLER_HASHES = {"trust": _stands_for_the_item, "reject": _is_refused}


@requirement(
    "PLACEHOLDERS-06",
    needs="pad_spans",
    cases={"small": Pair(1, 2), "beyond-32-bits": Pair(5, 5 + 2**32), "largest": Pair(2**64 - 1, 2**63 - 1)},
    bugs=("C02", "C09", "uuid-lost-when-caches-off"),
)
def test_a_callers_hash_stands_for_the_item(engine: Engine, case: Pair) -> None:
    """A hash from the caller MUST stand for the item instead of its content, by an engine that trusts such hashes.

    An engine with the trait `caller_hashes="reject"` refuses an item that carries one.
    """
    spans = (Span(1, 6), Span(8, 9))
    one, other = (picture(letter, spans, caller_hash=case.first) for letter in "ij")
    renamed = picture("i", spans, caller_hash=case.second)
    CALLER_HASHES[engine.traits.caller_hashes](engine, draw(".iiiiii.ii.").input_ids, one, other, renamed)


@requirement("PLACEHOLDERS-07", needs="pad_spans", cases=OVERLAPPING)
def test_padding_refuses_spans_that_overlap(engine: Engine, case: BadSpans) -> None:
    """Padding MUST refuse spans that overlap: some position would get the id of a wrong item."""
    ids = np.arange(20, 20 + case.length, dtype=np.int64)
    refuses(lambda: engine.pad_spans(ids, case.items), f"{[item.spans for item in case.items]} in {case.length} positions")


@requirement(
    "PLACEHOLDERS-08",
    needs="token_modalities",
    cases={
        name: Exact((len(p.input_ids), p.items), oracle.modalities(len(p.input_ids), p.items)) for name, p in PROMPTS.items()
    },
)
def test_each_position_has_the_modality_of_its_span(engine: Engine, case: Exact) -> None:
    """The modality of a position MUST be that of the span it lies in, and 0 at text."""
    equal(engine.token_modalities(*case.given), case.expected, "the modalities")


@requirement("PLACEHOLDERS-17", needs="pad_spans", cases=OUTSIDE, bugs=("N03", "W06"), level=SHOULD)
def test_padding_refuses_spans_outside_the_prompt(engine: Engine, case: BadSpans) -> None:
    """Padding SHOULD refuse a span that ends outside the prompt: a part of the item has no place in it.

    An engine that cuts long prompts may cut the span with them; the length of the prompt stays as it was.
    """
    ids = np.arange(20, 20 + case.length, dtype=np.int64)
    refuses(lambda: engine.pad_spans(ids, case.items), f"{[item.spans for item in case.items]} in {case.length} positions")


@requirement("PLACEHOLDERS-09", needs="token_modalities", cases=OVERLAPPING | OUTSIDE)
def test_modalities_refuse_spans_that_overlap_or_leave_the_prompt(engine: Engine, case: BadSpans) -> None:
    """Token modalities MUST NOT be given for spans that overlap or end outside the prompt."""
    what = f"{[item.spans for item in case.items]} in {case.length} positions"
    refuses(lambda: engine.token_modalities(case.length, case.items), what)


@requirement(
    "PLACEHOLDERS-10",
    needs="pad_spans",
    profile=SGLANG,
    cases={name: Exact(PROMPTS[name], oracle.padded(*PROMPTS[name])) for name in ("several-spans", "all-modalities")}
    | {"callers-hash": Exact(NAMED, oracle.padded(*NAMED))},
)
def test_padded_ids_have_the_exact_values(engine: Engine, case: Exact) -> None:
    """Padded ids MUST equal SGLang's: the four sentinels of the item in turn, from the first one on in every span."""
    equal(engine.pad_spans(case.given.input_ids.copy(), case.given.items), case.expected, "the padded ids")
