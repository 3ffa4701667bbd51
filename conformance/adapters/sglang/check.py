"""What SGLang 0.5.23 gets wrong, seen without the suite.

`python -m conformance.adapters.sglang.check` prints one line a finding, with the requirements that it fails. Here are
only SGLang's own functions and inputs made by hand: no rule, no oracle and no translation of the suite has a part in it,
so that an entry in the list of known failures rests on more than the suite's word.
"""

import sys

from conformance.adapters.checks import Checks
from conformance.adapters.sglang import (
    check_decoding,
    check_disaggregation,
    check_encoding,
    check_identity,
    check_kernels,
    check_lifecycle,
    check_media,
    check_parallel,
    check_placeholders,
    check_positions,
    check_processors,
    check_pruning,
    check_requests,
    check_speculation,
    check_transport,
    cpu,
)

MODULES = (
    check_media,
    check_decoding,
    check_requests,
    check_processors,
    check_identity,
    check_placeholders,
    check_positions,
    check_encoding,
    check_pruning,
    check_speculation,
    check_transport,
    check_lifecycle,
    check_parallel,
    check_disaggregation,
    check_kernels,
)
CHECKS = Checks(one for module in MODULES for one in module.CHECKS)

if __name__ == "__main__":
    cpu.prepare()
    sys.exit(CHECKS.run())
