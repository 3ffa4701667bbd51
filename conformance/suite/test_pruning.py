"""PRUNING: efficient video sampling: which tokens of a video are kept, and what becomes of the prompt."""

import numpy as np
import torch

from conformance.cases import Exact
from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles import pruning as oracle
from conformance.oracles.pruning import Count
from conformance.requirement import SGLANG, SHOULD, requirement
from conformance.world.videos import Pruned, Video, pruned, video

COUNTS = {
    "nothing-goes": oracle.count(4, 3, 0.0),
    "half": oracle.count(4, 8, 0.5),
    "half-of-an-odd-number": oracle.count(3, 3, 0.5),
    "the-first-frame-is-more": oracle.count(256, 2, 0.75),
    "one-frame": oracle.count(9, 1, 0.9),
    "one-token": oracle.count(1, 1, 0.5),
    "fewer-than-frames": oracle.count(1, 8, 0.7),
    "a-long-video": oracle.count(256, 768, 0.3),
    "next-to-everything-goes": oracle.count(4, 1000, 0.99),
    "a-tenth-of-ten": oracle.count(1, 10, 0.9),
}
MASKS = {
    "one-frame": video("ab/cd", 0.5),
    "one-place-moves": video("aaaa|aaae|aaaa", 0.5),
    "a-cut": video("aa/aa|ee/ee|ee/ee", 0.25),
    "a-flash": video("aaaa|eeee|eeee|aaaa", 0.25),
    "a-slow-change": video("aaaa|bbbb|cccc|aaaa", 0.375),
    "a-darker-frame": video("AAAA|aaaa|aabb", 0.5),
    "two-pictures-trade-places": video("ae/ae|ea/ae", 0.25),
    "three-rows-of-two": video("ab/ab/ab|ab/ab/ae|ab/cb/ae", 0.5),
    "one-token-a-frame": video("a|b|b|e|e|e", 0.5),
    "a-tenth-of-ten": video("a|a|a|a|a|a|a|a|a|e", 0.9),
    "unequal-changes": video("aaaa|abce|abce|aaaa", 0.375),
    "nothing-changes": video("ab/cd|ab/cd|ab/cd", 0.5),
    "next-to-everything-goes": video("abcd|abce|eeee", 0.99),
    "half-precision": video("aaaa|abce|abce|aaaa", 0.375, torch.float16),
    "bfloat": video("aaaa|abce|abce|aaaa", 0.375, torch.bfloat16),
}
ZEROS = {
    "a-token-of-zeros": video("a0aa|aaba|aaba", 0.5),
    "a-frame-of-zeros": video("aaaa|0000|aaaa|bbbb", 0.5),
}
PROMPTS = {
    "one-span": pruned("..VVVVVvvVvvvv.."),
    "a-span-for-each-frame": pruned(".VVVV..VvvV.vvVv."),
    "a-frame-without-tokens": pruned(".VVVV.vvvv.VvvV."),
    "the-last-frame-without-tokens": pruned(".VVVV.VvvV.vvvv"),
    "the-first-frame-alone": pruned(".VVVVvvvvvvvv."),
    "a-picture-before": pruned(".iiii.VVVVvvVv."),
    "a-picture-after": pruned(".VVVVvvVv.iiii.."),
    "pictures-all-around": pruned("iiii.VVVV.vVvV.jjjj.k"),
    "two-videos": pruned(".VVVVvvvV.WWWWWwww."),
    "two-videos-of-frames": pruned(".VVVV.vvVV..WWWW.Wwww."),
    "listed-in-another-order": pruned(".iiii.VVVVvvVv.WWWWwwww.", listed="wiv"),
    "a-recording-beside-it": pruned(".aaaa.VVVVvvVv.bbbb"),
    "more-frames-than-columns": pruned(".VVVVvvvVvvvVvvvVvVvv.."),
    "nothing-but-a-video": pruned("VVVVVvvv"),
    "the-prompt-begins-with-it": pruned("VVVV.vvVv."),
}
WHOLE = {
    "text-alone": pruned("....."),
    "a-video": pruned(".VVVVVVVV."),
    "frames-and-pictures": pruned(".iiii.VVVV.VVVV.jjjj."),
    "all-modalities": pruned(".iiii.VVVVVVVV.WWWW.aaaa."),
}


@requirement("PRUNING-01", needs="retained_count", cases=COUNTS)
def test_as_many_tokens_are_kept_as_the_rate_leaves(engine: Engine, case: Count) -> None:
    """The retained count MUST be the whole part of (1 - rate) of all tokens, and never less than one frame.

    Where binary arithmetic gives another whole part than the decimal that the rate is written as, both are right.
    """
    observed = engine.retained_count(*case.given)
    holds(observed in case.right, f"of {case.given}, {observed} tokens are kept, and not {' or '.join(map(str, case.right))}")


@requirement(
    "PRUNING-02",
    needs="retained_count",
    level=SHOULD,
    cases={
        name: Exact(given, oracle.as_written(*given))
        for name, given in {
            "a-tenth-of-twenty": (1, 20, 0.9),
            "three-tenths": (1, 10, 0.7),
            "a-hundredth": (4, 100, 0.99),
            "a-long-video": (256, 100, 0.9),
        }.items()
    },
)
def test_a_rate_is_the_decimal_that_was_written(engine: Engine, case: Exact) -> None:
    """A rate SHOULD be read as the decimal that it is written as: 0.9 leaves two tokens of twenty, not one."""
    equal(engine.retained_count(*case.given), case.expected, f"the retained count of {case.given}")


@requirement(
    "PRUNING-03",
    needs="retained_count",
    cases={"all": 1.0, "more-than-all": 1.5, "negative": -0.1, "not-a-number": float("nan"), "endless": float("inf")},
)
def test_a_rate_that_is_no_share_is_refused(engine: Engine, case: float) -> None:
    """A rate outside 0 <= rate < 1 MUST be refused."""
    refuses(lambda: engine.retained_count(4, 8, case), f"a pruning rate of {case}")


@requirement(
    "PRUNING-04", needs=("retained_count", "retention_mask"), cases=MASKS | ZEROS, bugs=("evs-video-then-image-mrope",)
)
def test_the_mask_keeps_the_retained_count(engine: Engine, case: Video) -> None:
    """A mask MUST have one bit a token and keep exactly as many as the retained count: the prompt has that many positions."""
    observed = engine.retention_mask(case.embeddings.clone(), case.grid, case.rate)
    frames, height, width = case.grid
    equal(len(observed), frames * height * width, "the length of the mask")
    equal(int(observed.sum()), engine.retained_count(height * width, frames, case.rate), "the number of tokens kept")


@requirement(
    "PRUNING-05",
    needs="retention_mask",
    cases=MASKS | {"zeros-in-half-precision": video("aaaa|0000|aaaa", 0.5, torch.float16)},
)
def test_the_first_frame_is_kept_whole(engine: Engine, case: Video) -> None:
    """Every token of the first frame MUST be kept, whatever the later ones are: it shows what they are compared with."""
    observed = engine.retention_mask(case.embeddings.clone(), case.grid, case.rate)
    first = case.grid[1] * case.grid[2]
    equal(observed[:first], np.ones(first, dtype=np.bool_), "the mask of the first frame", where="token {}".format)


@requirement("PRUNING-06", needs="retention_mask", cases=MASKS)
def test_the_most_unlike_tokens_are_kept(engine: Engine, case: Video) -> None:
    """A token MUST NOT be dropped for one that is more like the token at its place in the previous frame, by their cosine."""
    observed = engine.retention_mask(case.embeddings.clone(), case.grid, case.rate)[case.grid[1] * case.grid[2] :]
    unlike = oracle.unlike(case)
    least = min((value for value, kept in zip(unlike, observed, strict=True) if kept), default=3)
    most = max((value for value, kept in zip(unlike, observed, strict=True) if not kept), default=0)
    holds(most <= least, f"a token with 1 - cosine = {most} is dropped, and one with {least} is kept")


@requirement(
    "PRUNING-07", needs="retention_mask", cases={name: case._replace(rate=0.0) for name, case in (MASKS | ZEROS).items()}
)
def test_rate_0_keeps_every_token(engine: Engine, case: Video) -> None:
    """At the rate 0 a mask MUST keep every token."""
    observed = engine.retention_mask(case.embeddings.clone(), case.grid, case.rate)
    equal(observed, np.ones(len(case.embeddings), dtype=np.bool_), "the mask", where="token {}".format)


@requirement(
    "PRUNING-08",
    needs="retention_mask",
    profile=SGLANG,
    cases={name: Exact(case, oracle.mask(case)) for name, case in (MASKS | ZEROS).items()},
)
def test_masks_have_the_exact_values(engine: Engine, case: Exact) -> None:
    """A mask MUST equal SGLang's: of equally unlike tokens the earlier one is kept, and zeros have the cosine 0."""
    observed = engine.retention_mask(case.given.embeddings.clone(), case.given.grid, case.given.rate)
    equal(observed, case.expected, "the mask", where="token {}".format)


@requirement(
    "PRUNING-09",
    needs="prune_prompt",
    cases={name: Exact(case, case.input_ids[oracle.survivors(case)]) for name, case in (PROMPTS | WHOLE).items()},
    bugs=("evs-qwen3-interleaved", "V01"),
)
def test_a_pruned_prompt_has_a_position_for_each_token_that_is_kept(engine: Engine, case: Exact) -> None:
    """A pruned prompt MUST hold all text in order, and between it as many placeholders as tokens are kept there.

    Tokens are kept by content, so the frames of a video have uneven shares: an even one puts rows under wrong timestamps.
    """
    observed, _ = engine.prune_prompt(case.given.input_ids.copy(), case.given.items, case.given.masks)
    equal(observed, case.expected, "the pruned prompt")


@requirement(
    "PRUNING-10", needs="prune_prompt", cases=PROMPTS | WHOLE, bugs=("evs-qwen3-interleaved", "prefix-noncontiguous-item")
)
def test_the_spans_of_a_pruned_prompt(engine: Engine, case: Pruned) -> None:
    """The spans of every item in a pruned prompt MUST be where its kept tokens are, also those of items behind a video."""
    _, observed = engine.prune_prompt(case.input_ids.copy(), case.items, case.masks)
    for number, (spans, expected) in enumerate(zip(observed, oracle.spans(case), strict=True)):
        equal(spans, expected, f"the spans of item {number}", where="span {}".format)


@requirement("PRUNING-11", needs="prune_prompt", cases=PROMPTS | WHOLE)
def test_pruning_does_not_touch_the_callers_ids(engine: Engine, case: Pruned) -> None:
    """Pruning MUST return a new array and leave the caller's as it was, also where nothing is pruned."""
    ids = case.input_ids.copy()
    observed, _ = engine.prune_prompt(ids, case.items, case.masks)
    equal(ids, case.input_ids, "the caller's ids after pruning")
    holds(not np.shares_memory(observed, ids), "the pruned ids share the memory of the caller's ids")


@requirement(
    "PRUNING-12",
    needs="prune_prompt",
    cases={
        "one-bit-too-few": Exact(pruned(".VVVVvvVv."), -1),
        "one-bit-too-many": Exact(pruned(".VVVVvvVv.."), 1),
        "a-bit-for-each-frame": Exact(pruned(".VVVV.vvVv."), -6),
    },
)
def test_a_mask_of_another_length_is_refused(engine: Engine, case: Exact) -> None:
    """A mask that has not one bit for each token of its item MUST be refused: nobody knows which tokens it means."""
    mask = np.resize(case.given.masks[0], len(case.given.masks[0]) + case.expected)
    refuses(lambda: engine.prune_prompt(case.given.input_ids.copy(), case.given.items, (mask,)), f"a mask of {len(mask)} bits")


@requirement("PRUNING-13", needs=("prune_prompt", "pad_spans"), cases=PROMPTS, level=SHOULD)
def test_padding_and_pruning_commute(engine: Engine, case: Pruned) -> None:
    """A padded prompt that is pruned SHOULD have the ids of a pruned prompt that is padded, whichever comes first."""
    ids, spans = engine.prune_prompt(case.input_ids.copy(), case.items, case.masks)
    items = oracle.moved(case.items, spans)
    padded, _ = engine.prune_prompt(engine.pad_spans(case.input_ids.copy(), case.items), case.items, case.masks)
    equal(padded, engine.pad_spans(ids, items), "the padded prompt after pruning")
