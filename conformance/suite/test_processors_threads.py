"""PROCESSORS: several prompts at once through one processor, whose tokenizer is one object for all of them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from conformance.compare import equal
from conformance.engine import Engine
from conformance.oracles import processors as oracle
from conformance.requirement import SHOULD, requirement
from conformance.suite.processors_cases import each, family_of
from conformance.world.processors import ARCHITECTURES, Prompt, marked, parts, processor

TOGETHER = {
    **each(("qwen2_vl", "llava", "gemma3", "pixtral"), "A {eye} and {cup}."),
    "qwen2-audio": marked("qwen2_audio", "First {tone}, then {hum}."),
}


@requirement(
    "PROCESSORS-26",
    needs="process",
    cases=TOGETHER,
    level=SHOULD,
    bugs=("tokenizer-already-borrowed",),
    family=family_of,
)
def test_threads_do_not_disturb_one_another(engine: Engine, case: Prompt) -> None:
    """What becomes of a prompt SHOULD NOT depend on the thread that asks, or on prompts that other threads ask about."""

    def ids(prompt: Prompt) -> np.ndarray:
        return engine.process(ARCHITECTURES[prompt.family], processor(prompt.family), parts(prompt.text))[0]

    asked = [case, Prompt(case.family, "Nothing to see, and more to read than that.")] * 6
    expected = [oracle.ids(prompt).tolist() for prompt in asked]
    with ThreadPoolExecutor(4) as pool:
        observed = [one.tolist() for one in pool.map(ids, asked)]
    equal(observed, expected, "the ids from 4 threads", where="call {}".format)
