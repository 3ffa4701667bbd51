"""Search for prompts and media that break a rule about processors."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.oracles import processors as oracle
from conformance.suite.processors_cases import FRAME_FAMILIES, PICTURE_FAMILIES, QWEN, Known, Typed, known
from conformance.world.processors import CLIPS, TONES, Prompt, marked
from fuzz.search import searches

WORDS = st.sampled_from(["", "", "a", " ", "What? ", "\n", "é", "<", "|>", "1 "])
SMALL = ("eye", "cup", "rocket")
TOKENS = {family: next(iter(kinds.values())) for family, kinds in oracle.PLACEHOLDERS.items()}


@st.composite
def prompts(
    choose: st.DrawFn,
    families: tuple[str, ...] = (*PICTURE_FAMILIES, "qwen2_audio"),
    fewest: int = 0,
    frames: tuple[str, ...] = (),
) -> Prompt:
    """Up to 4 media that the family takes, with any words between them; shrinks to few media and no words.

    frames: the videos for families that show them as pictures. In one prompt they have one number of frames: where they
    differ, transformers' processor refuses them for InternVL, and fills the shorter ones up for SmolVLM.
    """
    family = choose(st.sampled_from(families))
    films = {**dict.fromkeys(QWEN, tuple(CLIPS)), **dict.fromkeys(FRAME_FAMILIES, frames)}
    names = tuple(TONES) if family == "qwen2_audio" else (*SMALL, *films.get(family, ()))
    media = choose(st.lists(st.sampled_from(names), min_size=fewest, max_size=4))
    text = "".join(choose(WORDS) + "{" + name + "}" for name in media) + choose(WORDS)
    return marked(family, text) if choose(st.booleans()) else Prompt(family, text)


@st.composite
def typed(choose: st.DrawFn) -> Typed:
    """A prompt with a typed placeholder in any of its texts; shrinks to one without media."""
    prompt = choose(prompts())
    written = prompt.text.replace("}", "}\0").split("\0")
    places = choose(st.lists(st.integers(0, len(written) - 1), min_size=1, max_size=2, unique=True))
    text = "".join("~" * (number in places) + piece for number, piece in enumerate(written))
    return Typed(Prompt(prompt.family, text), TOKENS[prompt.family])


@searches("PROCESSORS-01", examples=60)
def test_the_ids_of_any_prompt() -> SearchStrategy[Known]:
    return prompts(frames=("clip",)).map(lambda case: known(oracle.ids, case))


@searches("PROCESSORS-02", examples=60)
def test_the_spans_of_any_prompt() -> SearchStrategy[Known]:
    return prompts(frames=("clip",)).map(lambda case: known(oracle.spans, case))


@searches("PROCESSORS-03", examples=40)
def test_the_rows_of_any_prompt() -> SearchStrategy[Prompt]:
    return prompts(frames=("clip",))


@searches("PROCESSORS-04", examples=60)
def test_any_prompt_given_as_ids() -> SearchStrategy[Prompt]:
    return prompts(frames=("clip",))


@searches("PROCESSORS-05", examples=60)
def test_any_ids() -> SearchStrategy[tuple[str, list[int]]]:
    return st.tuples(st.sampled_from(PICTURE_FAMILIES), st.lists(st.integers(0, 255), max_size=8))


@searches("PROCESSORS-06", examples=60)
def test_any_typed_placeholder() -> SearchStrategy[Typed]:
    return typed()


@searches("PROCESSORS-09", examples=60)
def test_any_expanded_prompt() -> SearchStrategy[Prompt]:
    return prompts(fewest=1)


@searches("PROCESSORS-10", examples=60)
def test_any_bundle() -> SearchStrategy[Prompt]:
    return prompts(fewest=1)


@searches("PROCESSORS-11", examples=40)
def test_the_identities_of_any_bundle() -> SearchStrategy[Prompt]:
    return prompts(fewest=1)


@searches("PROCESSORS-14", examples=30)
def test_any_media_in_three_forms() -> SearchStrategy[Prompt]:
    return prompts(QWEN, fewest=1)


@searches("PROCESSORS-15", examples=40)
def test_the_encoded_rows_of_any_bundle() -> SearchStrategy[Prompt]:
    return prompts(fewest=1)
