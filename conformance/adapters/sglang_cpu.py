"""SGLang, imported on a machine that it was not made for.

SGLang's multimodal input pipeline is Python over torch and runs on any CPU. But to import one function of it is to
import the whole server, and the server expects a GPU machine with some sixty packages. Four things are in the way:

1. Packages that are not installed. Those that the server imports, but the pipeline never calls, are replaced by
   stand-ins while SGLang's modules are imported. An installed package is always used as it is, and nobody but SGLang
   gets to see a stand-in: transformers, for one, asks what is installed and acts on the answer.
2. torchvision beside a CPU build of torch (see `conformance.world.torchvision_cpu`).
3. What a server sets up when it starts: its settings, which a few functions read, and the one embedding cache of the
   process. Here they are those of a server that was started without options.
4. Warnings and log lines about the missing GPU.

Nothing of SGLang itself is replaced.
"""

import asyncio
import importlib
import importlib.abc
import importlib.machinery
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from conformance.engine import EngineNotLoaded
from conformance.world.torchvision_cpu import complete_torchvision

VERSION = "0.5.23"
"""The version whose imports `REPLACEABLE` lists."""

NEEDED = ("sglang", "msgspec", "triton")
"""What has to be installed beside what mmproof itself needs."""

REPLACEABLE = (
    "IPython", "aiohttp", "compressed_tensors", "dill", "einops", "fastapi", "gguf", "openai", "orjson",
    "partial_json_parser", "psutil", "pybase64", "requests", "sentencepiece", "starlette", "torchvision", "tvm_ffi", "uvicorn",
    "uvloop", "zmq",
)  # fmt: skip
"""The packages that SGLang's server imports and its multimodal input pipeline never calls."""

VALUES = {
    "dill.dumps": lambda value: repr(value).encode(),
    "uvloop.EventLoopPolicy": asyncio.DefaultEventLoopPolicy,
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
            f"than `pip install --no-deps sglang=={VERSION} msgspec triton` adds"
        )
    complete_torchvision()
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


def module(name: str) -> Any:
    """A module of SGLang."""
    with _stand_ins():
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise EngineNotLoaded(f"{name} needs a package that is not installed: {error.name}") from error


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Stand-ins for missing packages, and no warnings about them or the missing GPU.

    They go when the block ends, except from the modules that imported them.
    """
    finder = _Finder(frozenset(name for name in REPLACEABLE if find_spec(name) is None))
    sys.meta_path.append(finder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, loaded in sys.modules.items() if isinstance(loaded, _StandIn)]:
            del sys.modules[name]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, missing: frozenset[str]) -> None:
        self._missing = missing

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._missing or _importer().partition(".")[0] != "sglang":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


class _StandIn(ModuleType):
    """A module that has every name; each stands for a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return VALUES.get(f"{self.__name__}.{name}") or _InertType(name, (_Inert,), {})


class _InertType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _InertType(name, (_Inert,), {})


class _Inert(metaclass=_InertType):
    """A class with every attribute, that may be derived from with any keywords and be the type of a pydantic field."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return importlib.import_module("pydantic_core.core_schema").any_schema()


def _importer() -> str:
    """The name of the module whose import statement is being carried out."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("importlib", "conformance"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))
