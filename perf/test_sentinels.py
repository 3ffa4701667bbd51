"""What sentinels cost."""

from conformance.engine import Engine
from perf.sized import Job, sized


@sized("sentinels")
def test_sentinels_of_one_picture(engine: Engine) -> Job:
    return lambda: engine.sentinels(bytes(32))


@sized("sentinels_from_hash")
def test_sentinels_of_one_hash(engine: Engine) -> Job:
    return lambda: engine.sentinels_from_hash(2**63)


@sized("check_vocabulary")
def test_the_check_of_a_vocabulary(engine: Engine) -> Job:
    return lambda: engine.check_vocabulary(151_936)
