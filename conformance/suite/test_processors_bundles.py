"""PROCESSORS: what a processor returned for a whole prompt, taken apart into its media."""

from conformance.cases import Pair
from conformance.compare import differ, equal, holds, refuses, same
from conformance.engine import Engine
from conformance.oracles import processors as oracle
from conformance.requirement import requirement
from conformance.suite.processors_cases import (
    BUNDLES,
    CHANGED,
    PROMPTS,
    QWEN,
    UNLIKE,
    Changed,
    changed_ids,
    family_of,
    layout_of,
)
from conformance.suite.test_processors import ask, bind
from conformance.world.processors import ARCHITECTURES, Prompt, marked, names, processor


@requirement(
    "PROCESSORS-09", needs="bind_output", cases=PROMPTS, bugs=("preexpanded-double-expansion", "O08", "O05"), family=family_of
)
def test_what_is_expanded_stays_as_it_is(engine: Engine, case: Prompt) -> None:
    """Media of a prompt that is expanded already MUST be found at their own placeholders: it is not expanded twice.

    Media without a token between them are told apart by their numbers of tokens.
    """
    equal(oracle.where(bind(engine, case)), oracle.spans(case), "the spans", where="item {}".format)


@requirement("PROCESSORS-10", needs="bind_output", cases=BUNDLES, bugs=("Q02", "Q03"), family=family_of)
def test_a_bundle_comes_apart_into_its_media(engine: Engine, case: Prompt) -> None:
    """Each medium of a bundle MUST get, bit for bit, the rows that it has alone: its own, all of them, and no padding."""
    items = bind(engine, case)
    equal(len(items), len(names(case.text)), "the number of items")
    for name, item in zip(names(case.text), items, strict=True):
        equal(oracle.squeezed(item.feature), oracle.rows(case.family, name), f"the rows of {name}", where="row {}".format)


@requirement("PROCESSORS-11", needs="bind_output", cases=BUNDLES, bugs=("Q06", "prefix-image-blind"), family=family_of)
def test_a_medium_of_a_bundle_is_known_as_it_is_alone(engine: Engine, case: Prompt) -> None:
    """The identity of a medium of a bundle MUST be the one that it has as the only medium of its prompt.

    Caches know media by it: a picture is the same picture beside another one.
    """
    for name, item in zip(names(case.text), bind(engine, case), strict=True):
        (alone,) = bind(engine, marked(case.family, "{" + name + "}"))
        holds(item.identity is not None, f"{name} must have an identity")
        same(item.identity, alone.identity, f"the identities of {name} in a bundle and alone")


@requirement("PROCESSORS-12", needs="bind_output", cases=UNLIKE, bugs=("Q06", "prefix-image-blind"), family=family_of)
def test_media_of_a_bundle_are_told_apart(engine: Engine, case: Pair) -> None:
    """Two different media of one bundle MUST have different identities."""
    items = bind(engine, case.first)
    equal(len(items), 2, "the number of items")
    differ(items[0].identity, items[1].identity, "the identities of two media")


GRIDS = {name: case for name, case in PROMPTS.items() if case.family in QWEN}


@requirement("PROCESSORS-13", needs=("process", "bind_output"), cases=GRIDS, bugs=("R03",), family=family_of)
def test_each_medium_has_its_own_grid(engine: Engine, case: Prompt) -> None:
    """Each medium of the families of Qwen MUST carry its own grid, in a bundle too."""
    expected = [oracle.grid(case.family, name) for name in names(case.text)]
    for items in (ask(engine, case)[1], bind(engine, case)):
        equal(len(items), len(expected), "the number of items")
        fields = [f"{oracle.kind(name)}_grid_thw" for name in names(case.text)]
        observed = [tuple(item.read(field)) for item, field in zip(items, fields, strict=True)]
        equal(observed, expected, "the grids", where="item {}".format)


@requirement(
    "PROCESSORS-14",
    needs=("process", "bind_output", "positions"),
    cases={name: case for name, case in BUNDLES.items() if case.family in QWEN},
    bugs=("R03", "O08"),
    family=family_of,
)
def test_one_medium_in_three_forms_is_one_medium(engine: Engine, case: Prompt) -> None:
    """Raw media, a processor's output and an encoder's rows MUST give the same spans and the same positions.

    What does not depend on the form must not: a client that encodes elsewhere asks about the same prompt.
    """
    layout = layout_of(case.family)
    ids, raw = ask(engine, case)
    forms = {"raw": raw, "a processor's output": bind(engine, case)}
    forms["an encoder's rows"] = bind(engine, case, oracle.precomputed(case))
    expected, _ = engine.positions(ids, raw, layout)
    for form, items in forms.items():
        equal(oracle.where(items), oracle.spans(case), f"the spans of {form}", where="item {}".format)
        equal(engine.positions(ids, items, layout)[0], expected, f"the positions of {form}", where="axis {}".format)


@requirement("PROCESSORS-15", needs="bind_output", cases=BUNDLES, bugs=("O08",), family=family_of)
def test_rows_of_an_encoder_go_to_their_own_places(engine: Engine, case: Prompt) -> None:
    """Media that come with the rows of an encoder MUST each keep their own, at their own placeholders."""
    given = oracle.precomputed(case)
    items = bind(engine, case, given)
    equal(oracle.where(items), oracle.spans(case), "the spans", where="item {}".format)
    taken = {key: iter(given[key]) for key in given if key.endswith("_embeds")}
    for name, item in zip(names(case.text), items, strict=True):
        equal(item.embedding, next(taken[f"{oracle.kind(name)}_embeds"]), f"the rows of {name}", where="row {}".format)


@requirement(
    "PROCESSORS-16", needs="bind_output", cases=CHANGED, bugs=("O01", "audio-literal-added-twice", "REG3"), family=family_of
)
def test_placeholders_and_media_that_do_not_match_are_refused(engine: Engine, case: Changed) -> None:
    """An expanded prompt with more or fewer placeholders than its media have tokens MUST be refused."""
    ids, output = changed_ids(case), oracle.output(case.prompt)
    family = case.prompt.family
    what = f"{len(ids)} ids of {family} with the output for {len(oracle.ids(case.prompt))}"
    refuses(lambda: len(engine.bind_output(ARCHITECTURES[family], processor(family), ids, output)), what)
