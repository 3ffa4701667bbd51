"""SPECULATION, n-grams: drafters without a model, which look the text up in itself."""

from conformance.cases import Exact
from conformance.compare import equal, holds
from conformance.engine import Engine
from conformance.oracles import speculation as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.merging_feeds import chunk_ids
from conformance.suite.speculation_cases import Lookup, proposed, spoken
from conformance.world.prompts import VOCABULARY
from reference.items import Chunk

TEXT = {
    "once-before": Lookup(spoken("ABCDE.AB")),
    "twice-before": Lookup(spoken("ABC.ABD.AB")),
    "runs-into-itself": Lookup(spoken("ABABAB")),
    "one-word-over-and-over": Lookup(spoken("AAAAA")),
    "nothing-before": Lookup(spoken("ABCDE")),
    "too-short-a-match": Lookup(spoken("ABCD.XB"), shortest=2),
    "shorter-than-the-shortest": Lookup(spoken("AA"), shortest=3),
    "one-word": Lookup(spoken("A")),
    "empty": Lookup(spoken("")),
    "one-proposal": Lookup(spoken("ABCDE.AB"), most=1),
    "more-than-there-are": Lookup(spoken("ABC.AB"), most=20),
    "text-around-a-picture": Lookup(spoken("ABC.iii.AB")),
}
BEFORE_MEDIA = {
    "a-picture-follows": Lookup(spoken("ABCiii.AB"), most=6),
    "a-picture-follows-at-once": Lookup(spoken("ABiii.AB")),
    "two-pictures": Lookup(spoken("ABCii.jj.AB"), most=8),
    "a-recording-follows": Lookup(spoken("ABCaaa.AB"), most=8),
    "once-before-text-once-before-media": Lookup(spoken("ABiii.ABC.AB"), most=6),
}
ACROSS_MEDIA = {
    "another-picture": Lookup(spoken("AiiBC.AjjB"), shortest=2),
    "ends-with-another-picture": Lookup(spoken("AiiBC.Ajj"), shortest=1),
    "nothing-but-pictures": Lookup(spoken("iiijjj"), shortest=2),
    "of-another-modality": Lookup(spoken("AiiBC.AvvB"), shortest=2),
}


@requirement("SPECULATION-11", needs="propose_ngram", cases=TEXT | BEFORE_MEDIA | ACROSS_MEDIA, bugs=("P04",))
def test_no_sentinel_is_proposed(engine: Engine, case: Lookup) -> None:
    """Every proposal MUST be an id of the vocabulary: the target embeds it, and a sentinel is outside of every table."""
    observed = proposed(engine, case)
    wrong = [number for number in observed if not 0 <= number < VOCABULARY]
    equal(wrong, [], "the proposals outside the vocabulary", where="number {}".format)


@requirement("SPECULATION-12", needs="propose_ngram", cases=TEXT | BEFORE_MEDIA)
def test_no_more_is_proposed_than_asked_for(engine: Engine, case: Lookup) -> None:
    """There MUST NOT be more proposals than asked for: slots for their keys and values are reserved for so many."""
    observed = proposed(engine, case)
    holds(len(observed) <= case.most, f"{len(observed)} proposals, where {case.most} were asked for")


@requirement("SPECULATION-13", needs="propose_ngram", level=SHOULD, cases=BEFORE_MEDIA, bugs=("P04",))
def test_proposals_end_before_media(engine: Engine, case: Lookup) -> None:
    """Proposals SHOULD end where media begin: the target samples no placeholder, and all behind it is refused as well."""
    observed = proposed(engine, case)
    followed = oracle.continuations(*case.prompt, case.shortest)
    right = [[], *(text[: len(observed)] for text in followed)]
    holds(observed in right, f"the proposals are {observed}, and the text that followed before is {followed}")


@requirement("SPECULATION-14", needs="propose_ngram", level=SHOULD, cases=TEXT)
def test_proposals_followed_the_last_words_before(engine: Engine, case: Lookup) -> None:
    """Proposals SHOULD be what followed an earlier occurrence of the last words, at least one wherever there is any."""
    observed = proposed(engine, case)
    followed = oracle.continuations(*case.prompt, case.shortest)
    right = [text[: max(len(observed), 1)] for text in followed] or [[]]
    holds(observed in right, f"the proposals are {observed}, and the text that followed before is {followed}")


@requirement(
    "SPECULATION-15",
    needs="propose_ngram",
    level=SHOULD,
    cases=ACROSS_MEDIA,
    bugs=("P04",),
)
def test_different_media_are_no_match(engine: Engine, case: Lookup) -> None:
    """Last words with a medium among them SHOULD match nothing: the ids of two pictures may be alike, they are not."""
    equal(proposed(engine, case), [], "the proposals", where="number {}".format)


@requirement(
    "SPECULATION-16",
    needs="propose_ngram",
    level=SHOULD,
    cases={
        "two-words-before-one": Exact(Lookup(spoken("BX.ABY.AB"), most=1), spoken("Y")),
        "three-before-two": Exact(Lookup(spoken("BCX.ABCY.BCZ.ABC"), most=1), spoken("Y")),
        "one-where-two-are-not-there": Exact(Lookup(spoken("BX.CY.AB"), most=1), spoken("X")),
        "two-where-the-third-is-a-picture": Exact(Lookup(spoken("CX.ABCY.iBC"), most=1), spoken("Y")),
        "before-text-not-before-media": Exact(Lookup(spoken("ABiii.BX.AB"), most=1), spoken("X")),
    },
)
def test_the_longest_match_counts(engine: Engine, case: Exact) -> None:
    """Of several matches the longest one with text behind it SHOULD be taken."""
    equal(proposed(engine, case.given), case.expected.input_ids.tolist(), "the proposals", where="number {}".format)


@requirement(
    "SPECULATION-17", needs="propose_ngram", cases={name: TEXT[name] for name in ("once-before", "text-around-a-picture")}
)
def test_looking_up_does_not_touch_the_ids(engine: Engine, case: Lookup) -> None:
    """The lookup MUST leave the ids as they were: they are the request's own."""
    ids = chunk_ids(engine, case.prompt, Chunk(0, len(case.prompt.input_ids)))
    given = ids.copy()
    engine.propose_ngram(given, case.prompt.items, case.shortest, case.longest, case.most)
    equal(given, ids, "the ids after the lookup")
