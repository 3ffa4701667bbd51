"""SGLang, imported on a machine that it was not made for.

SGLang's multimodal input pipeline is Python over torch and runs on any CPU. But to import one function of it is to
import the whole server, and the server expects a GPU machine with some sixty packages. Four things are in the way:

1. Packages that are not installed (see `conformance.adapters.stand_ins`).
2. torchvision and torchaudio beside a CPU build of torch (see `conformance.world.torchvision_cpu`). Of torchaudio, SGLang
   uses the resampling, which is Python over torch. torchcodec needs FFmpeg of the system: without it SGLang takes decord.
3. What a server sets up when it starts: its settings, which a few functions read, and the one embedding cache of the
   process. Here they are those of a server that was started without options.
4. Warnings and log lines about the missing GPU.

Nothing of SGLang itself is replaced.
"""

import asyncio
import logging
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from conformance.adapters.stand_ins import imported, stand_ins
from conformance.engine import EngineNotLoaded
from conformance.world.torchvision_cpu import complete_torchvision

VERSION = "0.5.23"
"""The version whose imports `REPLACEABLE` lists."""

NEEDED = {
    "sglang": f"sglang=={VERSION}",
    "msgspec": "msgspec",
    "triton": "triton",
    "decord": "decord2",
    "soundfile": "soundfile",
    "torchaudio": "torchaudio",
}
"""What has to be installed beside what mmproof itself needs: modules, and the packages that have them."""

REPLACEABLE = (
    "IPython", "aiohttp", "compressed_tensors", "dill", "einops", "fastapi", "gguf", "openai", "orjson",
    "partial_json_parser", "psutil", "pybase64", "requests", "sentencepiece", "setproctitle", "starlette", "torchvision",
    "tvm_ffi", "uvicorn", "uvloop", "zmq",
)  # fmt: skip
"""The packages that SGLang's server imports and its multimodal input pipeline never calls."""

VALUES = {
    "dill.dumps": lambda value: repr(value).encode(),
    "fastapi.APIRouter": MagicMock,
    "uvloop.EventLoopPolicy": asyncio.DefaultEventLoopPolicy,
    "zmq.Context": MagicMock,
}
"""What SGLang's modules do call while they are imported, and what answers."""


@dataclass(frozen=True, slots=True)
class Sglang:
    """The modules of SGLang in which the pipeline lies."""

    version: str
    batch: Any
    utils: Any
    schedule: Any
    caches: Any


@cache
def prepare() -> Sglang:
    """Import SGLang, once a process, and set up what its functions expect of a server.

    Raises EngineNotLoaded, with what to install, when it is missing.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise EngineNotLoaded(
            f"SGLang cannot be run, {' and '.join(missing)} are not installed; on a CPU its multimodal functions need no more "
            f"than `pip install --no-deps {' '.join(NEEDED.values())}` adds"
        )
    complete_torchvision()
    _complete_torchaudio()
    logging.getLogger("sglang").setLevel(logging.ERROR)
    context = module("sglang.srt.runtime_context").get_context()
    settings = module("sglang.srt.server_args").ServerArgs(model_path="none", device="cpu")
    with _stand_ins():
        context.set_server_args(settings)
    context.override("mmproof", chunked_prefill_size=-1, mm_process_config={})
    schedule = module("sglang.srt.managers.mm_schedule")
    schedule.init_mm_embedding_cache(module("sglang.srt.environ").envs.SGLANG_VLM_CACHE_SIZE_MB.get() << 20)
    return Sglang(
        version=str(module("sglang").__version__),
        batch=module("sglang.srt.managers.schedule_batch"),
        utils=module("sglang.srt.managers.mm_utils"),
        schedule=schedule,
        caches=module("sglang.srt.mem_cache.multimodal_cache"),
    )


@cache
def module(name: str) -> Any:
    """A module of SGLang, imported once."""
    with _stand_ins():
        return imported(name)


def _complete_torchaudio() -> None:
    """Make `import torchaudio` work, without its binary part where that does not load, or is for another CUDA."""
    try:
        import_module("torchaudio")
    except (OSError, RuntimeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]:
            del sys.modules[name]
        extension = ModuleType("torchaudio._extension")
        vars(extension).update(
            _IS_TORCHAUDIO_EXT_AVAILABLE=False, _IS_ALIGN_AVAILABLE=False, fail_if_no_align=lambda function: function
        )
        sys.modules[extension.__name__] = extension
        import_module("torchaudio")


def _stand_ins() -> AbstractContextManager[None]:
    return stand_ins("sglang", REPLACEABLE, VALUES)
