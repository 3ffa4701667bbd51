"""Import torchvision beside a CPU build of torch.

The torchvision wheel of PyPI is built against the CUDA build of torch. Beside a CPU build its binary part does not
load, two operators stay undeclared, and `import torchvision` fails. With it fails whatever of transformers looks at
pictures, even where it would not use torchvision: transformers finds torchvision installed and imports it.

Resizing and normalising are plain Python over torch, so it is enough to declare the two operators.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

import torch

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def complete_torchvision() -> None:
    """Make `import torchvision` work. Does nothing where it is absent, or whole."""
    if find_spec("torchvision") is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchvision misses its own picture decoders; nobody here uses them
        try:
            import_module("torchvision")
        except RuntimeError as error:
            if "operator torchvision::" not in str(error):
                raise
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            for operator in ("torchvision::nms", "torchvision::qnms"):
                torch.library.define(operator, SCHEMA)
            import_module("torchvision")
