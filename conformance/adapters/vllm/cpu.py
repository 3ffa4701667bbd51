"""vLLM, imported on a machine that it was not made for.

vLLM's multimodal input pipeline is Python over torch. To import it without the rest of a server, three things are done,
and nothing of vLLM itself is replaced:

1. Stand-ins for packages that are not installed (see `conformance.adapters.stand_ins`), and torchvision beside a CPU
   build of torch (see `conformance.world.torchvision_cpu`).
2. VLLM_TARGET_DEVICE=cpu, vLLM's own way to say so on a machine for which it was not built.
3. Its log is quiet: it reports that its compiled part does not load, which no part of the pipeline needs, and what it refuses.
"""

import base64
import logging
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from conformance.adapters.stand_ins import imported, stand_ins
from conformance.engine import EngineNotLoaded
from conformance.world.torchvision_cpu import complete_torchvision

VERSION = "0.33.0"
"""The version whose imports `REPLACEABLE` lists."""

NEEDED = ("vllm", "msgspec", "requests", "cv2")
"""What has to be imported beside what mmproof itself needs."""

INSTALL = f"pip install --no-deps vllm=={VERSION} msgspec requests urllib3 certifi charset-normalizer opencv-python-headless"
"""What has all of that."""

REPLACEABLE = (
    "aiohttp", "cbor2", "cloudpickle", "compressed_tensors", "einops", "fastapi", "llguidance", "mistral_common", "openai",
    "openai_harmony", "numba", "partial_json_parser", "prometheus_client", "psutil", "pybase64", "uvloop",
    "xgrammar", "zmq",
)  # fmt: skip
"""The packages that vLLM imports and its multimodal input pipeline never calls, but for numba and pybase64."""


def _as_it_is(*functions: Any, **options: Any) -> Any:
    """A decorator, with options or without, that leaves a function to Python."""
    return functions[0] if functions else _as_it_is


VALUES = {
    "pybase64.b64decode": base64.b64decode,
    "numba.jit": _as_it_is,
    "numba.njit": _as_it_is,
    "numba.prange": range,
    "numba.get_num_threads": lambda: 1,
    "numba.set_num_threads": lambda count: None,
}
"""numba and pybase64 make the same functions faster."""


@dataclass(frozen=True, slots=True)
class Vllm:
    """The modules of vLLM in which the pipeline lies."""

    version: str
    inputs: Any
    parse: Any
    processing: Any
    utils: Any
    interfaces: Any
    renderers: Any
    request: Any
    scheduler: Any
    encoder_cache: Any
    encoder_runner: Any
    qwen3_vl: Any


@cache
def prepare() -> Vllm:
    """Import vLLM, once a process.

    Raises EngineNotLoaded, with what to install, when it is missing.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise EngineNotLoaded(
            f"vLLM cannot be run, {' and '.join(missing)} are not installed; on a CPU its multimodal functions need no more "
            f"than `{INSTALL}` adds"
        )
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    complete_torchvision()
    logging.getLogger("vllm").setLevel(logging.CRITICAL)
    return Vllm(
        version=str(module("vllm.version").__version__),
        inputs=module("vllm.multimodal.inputs"),
        parse=module("vllm.multimodal.parse"),
        processing=module("vllm.multimodal.processing.inputs"),
        utils=module("vllm.multimodal.utils"),
        interfaces=module("vllm.model_executor.models.interfaces"),
        renderers=module("vllm.renderers.base"),
        request=module("vllm.v1.request"),
        scheduler=module("vllm.v1.core.sched.scheduler"),
        encoder_cache=module("vllm.v1.worker.gpu.mm.encoder_cache"),
        encoder_runner=module("vllm.v1.worker.gpu.mm.encoder_runner"),
        qwen3_vl=module("vllm.model_executor.models.qwen3_vl"),
    )


@cache
def module(name: str) -> Any:
    """A module of vLLM, looked up once."""
    with stand_ins("vllm", REPLACEABLE, VALUES):
        return imported(name)
