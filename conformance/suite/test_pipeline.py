"""PIPELINE: from a prompt and its pictures to what enters the language model, and what it answers.

The engine serves a real but tiny Qwen2-VL. Prompts name their pictures in braces, see `conformance.world.pictures`.
"""

from typing import NamedTuple

import numpy as np

from conformance.cases import Exact, Pair
from conformance.compare import equal, refuses, unless_refused
from conformance.engine import Engine
from conformance.oracles import pipeline as oracle
from conformance.protocol.pipeline import Prefill
from conformance.requirement import requirement
from conformance.world.checkpoint import PLACEHOLDER, tiny_qwen2_vl
from conformance.world.pictures import picture, pictures, render


class Chunked(NamedTuple):
    """A prompt, and how many positions a step computes."""

    prompt: str
    chunk_length: int


class Mismatched(NamedTuple):
    """A rendered prompt, and the names of pictures that are too many or too few for it."""

    text: str
    names: tuple[str, ...]


PROMPTS = {
    "picture-between-texts": "What is this? {chelsea}Tell me.",
    "picture-first": "{astronaut}Who is this?",
    "picture-last": "Who is this? {astronaut}",
    "picture-alone": "{rocket}",
    "no-picture": "There is nothing to see.",
    "equal-sizes": "{chelsea} or {coffee}?",
    "equal-sizes-in-the-other-order": "{coffee} or {chelsea}?",
    "different-sizes": "A {rocket}, an {eye} and an {astronaut}.",
    "adjacent": "{coffee}{eye}{rocket}",
    "repeated": "{eye} and once more {eye}",
    "repeated-around-another": "{eye}{cup}{eye}",
}
CHUNKED = {
    "one-position": Chunked("{eye}?", 1),
    "within-a-picture": Chunked("What is this? {chelsea}Tell me.", 21),
    "many-within-a-picture": Chunked("{chelsea}!", 5),
    "at-the-start-of-a-picture": Chunked("Look: {eye}!", 7),
    "at-the-end-of-a-picture": Chunked("Look: {eye}!", 11),
    "without-media-between": Chunked("{eye} some words between two pictures {cup}", 8),
    "across-two-pictures": Chunked("{eye}{cup}{eye}{cup}", 9),
    "equal-sizes": Chunked("{chelsea} or {coffee}?", 16),
    "no-picture": Chunked("There is nothing to see.", 7),
    "longer-than-the-prompt": Chunked("{eye} and {cup}", 1000),
}
SPELLINGS = {
    "chat": "<|im_start|>user\n{chelsea}What is this?<|im_end|>\n<|im_start|>assistant\n",
    "spaces": "  two  spaces , and more  {eye}  ",
    "punctuation": "Is it a cat ? Do n't know . {eye} ,",
    "newlines": "\n{eye}\n\nA line.\n",
    "accents": "Où est le café ? {cup}",
    "other-scripts": "これは何ですか {eye} 🙂",
    "special-tokens": "<|vision_pad|>{eye}<|object_ref_start|>a cat<|object_ref_end|>",
    "start-marker-at-the-end": "{eye} What does it mean? <|vision_start|>",
    "end-marker-at-the-start": "<|vision_end|> and {eye}",
    "no-picture": "There is nothing to see.",
    "several": "{rocket}{coffee} and {eye}.",
}
OTHER_PICTURE = {
    "in-the-middle": Pair("What is this? {eye} Tell me.", "What is this? {cup} Tell me."),
    "first-of-two": Pair("{eye}{cup}", "{cup}{cup}"),
    "last-of-two": Pair("{eye} and {eye}", "{eye} and {cup}"),
    "larger": Pair("{chelsea}?", "{coffee}?"),
}
SWAPPED = {
    "small": Pair("First {eye} then {cup}", "First {cup} then {eye}"),
    "large": Pair("{chelsea}{coffee}", "{coffee}{chelsea}"),
}
REPEATED = {
    "whole": Chunked("What is this? {eye}", 1000),
    "in-chunks": Chunked("{eye} or {cup}?", 8),
}
MISMATCHED = {
    "one-placeholder-too-many": Mismatched(f"{PLACEHOLDER} and {PLACEHOLDER}", ("eye",)),
    "one-placeholder-too-few": Mismatched(f"Look: {PLACEHOLDER}", ("eye", "cup")),
    "no-placeholder": Mismatched("Look.", ("eye",)),
}
TYPED = {
    "before-the-picture": "What does <|image_pad|> mean? {eye}",
    "behind-the-picture": "{eye} What does <|image_pad|> mean?",
    "right-before-the-picture": "<|image_pad|>{eye}",
    "without-a-picture": "What does <|image_pad|> mean?",
    "a-whole-placeholder-without-a-picture": f"What does {PLACEHOLDER} mean?",
}


def ask(engine: Engine, prompt: str, chunk_length: int | None = None) -> Prefill:
    checkpoint = tiny_qwen2_vl()
    return engine.prefill(checkpoint, render(prompt, checkpoint.placeholder), pictures(prompt), chunk_length)


@requirement("PIPELINE-01", needs="prefill", cases=PROMPTS, bugs=("Q01", "Q02", "Q03", "D02", "empty-images-list"))
def test_each_picture_enters_at_its_place(engine: Engine, case: str) -> None:
    """What enters the language model MUST be, bit for bit, the text embeddings with each picture's rows at its own place.

    Right is transformers' own way: its processor, its vision tower on each picture, and a masked scatter.
    """
    equal(ask(engine, case).embeddings, oracle.embeddings(case), "what enters the language model", where=oracle.where(case))


@requirement("PIPELINE-02", needs="prefill", cases=CHUNKED, bugs=("chunked-prefill-old-merge-shape", "Z04"))
def test_chunks_enter_as_the_whole_prompt_would(engine: Engine, case: Chunked) -> None:
    """A prompt that is computed in chunks of any length MUST enter the language model bit for bit as it would in one."""
    expected = oracle.embeddings(case.prompt)
    equal(ask(engine, *case).embeddings, expected, "what enters the language model", where=oracle.where(case.prompt))


@requirement("PIPELINE-03", needs="prefill", cases=PROMPTS, bugs=("R03", "D02"))
def test_the_model_answers_as_it_would_alone(engine: Engine, case: str) -> None:
    """The logits MUST be, bit for bit, those of transformers' own forward in the same process.

    Embeddings can be right and the answer wrong: through positions, masks, or what is left of an earlier request.
    """
    equal(ask(engine, case).logits, oracle.logits(case), "the logits", where=oracle.where(case))


@requirement("PIPELINE-04", needs="prefill", cases=CHUNKED, bugs=("R08", "mlx-mrope-chunk-offset-delta"))
def test_the_model_answers_chunks_as_it_would_alone(engine: Engine, case: Chunked) -> None:
    """The logits of a prompt in chunks MUST be, bit for bit, those of transformers' own model in the same chunks."""
    equal(ask(engine, *case).logits, oracle.logits(*case), "the logits", where=oracle.where(case.prompt))


@requirement("PIPELINE-05", needs="prefill", cases=OTHER_PICTURE, bugs=("Q06", "D02", "XL1", "prefix-image-blind"))
def test_another_picture_changes_its_rows_and_nothing_else(engine: Engine, case: Pair) -> None:
    """Of two prompts that differ in one picture, every row of that picture MUST differ and every other row be the same.

    Asked for one after the other: what an engine keeps of a request must not answer the next.
    """
    one, other = (ask(engine, prompt) for prompt in case)
    expected = (oracle.embeddings(case.first) != oracle.embeddings(case.second)).any(dim=1)
    equal(len(other.embeddings), len(one.embeddings), "the number of rows")
    equal((one.embeddings != other.embeddings).any(dim=1), expected, "which rows differ", where=oracle.where(case.first))


@requirement("PIPELINE-06", needs="prefill", cases=SWAPPED, bugs=("Q02", "H21"))
def test_swapped_pictures_swap_their_rows(engine: Engine, case: Pair) -> None:
    """Two pictures of equal size that change places in a prompt MUST change the places of their rows."""
    one, other = (ask(engine, prompt).embeddings for prompt in case)
    media = oracle.media(case.first)
    half = media.sum() // 2
    equal(len(one), len(media), "the number of rows")
    equal(other[media], one[media].roll(half, dims=0), "the rows of the swapped pictures", where="row {}".format)


@requirement("PIPELINE-07", needs=("prefill", "pad_spans"), cases=OTHER_PICTURE, bugs=("H07", "prefix-image-blind"))
def test_ids_tell_pictures_apart_from_their_first_position_on(engine: Engine, case: Pair) -> None:
    """The ids of two prompts that differ in one picture MUST differ at every position of it and agree at all others.

    This is for engines that pad ids by content: their prefix cache compares nothing else, and may stop anywhere. The
    text before the picture is still shared.
    """
    one, other = (ask(engine, prompt).input_ids for prompt in case)
    changed = (oracle.embeddings(case.first) != oracle.embeddings(case.second)).any(dim=1).numpy()
    equal(len(other), len(one), "the number of ids")
    equal(one != other, changed, "which ids differ", where=oracle.where(case.first))


@requirement(
    "PIPELINE-08",
    needs="prefill",
    cases={name: Exact(prompt, oracle.spell(prompt)) for name, prompt in SPELLINGS.items()},
    bugs=("O07", "preexpanded-double-expansion"),
)
def test_text_ids_survive(engine: Engine, case: Exact) -> None:
    """The ids of the text MUST be those of the tokenizer, and each picture MUST fill as many positions as it has tokens.

    What fills the positions of a picture is free. Text that is decoded and tokenised again comes back as other text.
    """
    text = np.not_equal(case.expected, oracle.PAD)
    observed = ask(engine, case.given).input_ids
    equal(len(observed), len(text), "the number of positions")
    equal(np.where(text, observed, oracle.PAD), np.array(case.expected), "the ids of the text", where=oracle.where(case.given))


@requirement("PIPELINE-09", needs="prefill", cases=MISMATCHED, bugs=("O01", "REG3", "audio-literal-added-twice"))
def test_placeholders_and_pictures_that_do_not_match_are_refused(engine: Engine, case: Mismatched) -> None:
    """A prompt with more or fewer placeholders than pictures MUST be refused: no picture may be left out or shared."""
    images = [picture(name) for name in case.names]
    what = f"{case.text!r} with {len(images)} pictures"
    refuses(lambda: engine.prefill(tiny_qwen2_vl(), case.text, images, None).input_ids.tolist(), what)


@requirement("PIPELINE-10", needs="prefill", cases=REPEATED, bugs=("Z03", "audio-literal-added-twice"))
def test_a_request_that_comes_again_is_served_alike(engine: Engine, case: Chunked) -> None:
    """A request that comes a second time MUST enter the language model, and be answered, as it was the first time.

    Then its embeddings, and maybe its prefix, are cached.
    """
    first, second = ask(engine, *case), ask(engine, *case)
    equal(second.embeddings, first.embeddings, "what enters the language model the second time")
    equal(second.logits, first.logits, "the logits the second time")


@requirement("PIPELINE-11", needs="prefill", cases=TYPED, bugs=("O02", "O03", "text-only-vision-tokens-crash"))
def test_a_token_that_a_user_typed_takes_no_picture(engine: Engine, case: str) -> None:
    """A placeholder token that stands for no picture MUST be refused or be read as text; it MUST NOT take a picture."""
    for fed in unless_refused(lambda: ask(engine, case).embeddings, repr(case)):
        equal(fed, oracle.embeddings(case), "what enters the language model", where=oracle.where(case))
