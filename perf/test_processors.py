"""What processing costs: a prompt with eight pictures, and the output for eight taken apart."""

from conformance.engine import Engine
from conformance.oracles import processors as oracle
from conformance.suite.processors_cases import MODULES
from conformance.world.processors import ARCHITECTURES, Prompt, parts, processor
from perf.sized import Job, sized

TEXT = "Compare " + ", ".join(["{rocket}", "{eye}"] * 4) + "."


@sized("process")
def test_process_eight_pictures(engine: Engine) -> Job:
    given, owner = parts(TEXT), processor("qwen2_vl")
    return lambda: engine.process(ARCHITECTURES["qwen2_vl"], owner, given)


@sized("process")
def test_process_text(engine: Engine) -> Job:
    owner = processor("qwen2_vl")
    return lambda: engine.process(ARCHITECTURES["qwen2_vl"], owner, ["A sentence of words. " * 100])


@sized("bind_output")
def test_take_eight_pictures_apart(engine: Engine) -> Job:
    case = Prompt("qwen2_vl", TEXT)
    ids, output, owner = oracle.ids(case), oracle.output(case), processor("qwen2_vl")
    return lambda: engine.bind_output(ARCHITECTURES["qwen2_vl"], owner, ids, output)


@sized("find_processor")
def test_find_a_processor(engine: Engine) -> Job:
    return lambda: engine.find_processor(MODULES, ["GammaForConditionalGeneration"])
