"""What vLLM 0.33.0 gets wrong, seen without the suite.

`python -m conformance.adapters.vllm.check` prints one line a finding, with the requirements that it fails. Here are only
vLLM's own functions and inputs made by hand: no rule, no oracle and no translation of the suite has a part in it, so
that an entry in the list of known failures rests on more than the suite's word.
"""

import sys

from conformance.adapters.checks import Checks
from conformance.adapters.vllm import (
    check_caches,
    check_fetching,
    check_identity,
    check_kernels,
    check_media,
    check_parallel,
    check_planning,
    check_positions,
    check_processors,
    check_speculation,
    check_steps,
    check_transport,
)

MODULES = (
    check_media,
    check_planning,
    check_fetching,
    check_identity,
    check_processors,
    check_caches,
    check_positions,
    check_steps,
    check_speculation,
    check_parallel,
    check_transport,
    check_kernels,
)
CHECKS = Checks(one for module in MODULES for one in module.CHECKS)

if __name__ == "__main__":
    sys.exit(CHECKS.run())
