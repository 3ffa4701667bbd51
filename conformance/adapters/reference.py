"""The reference, seen as one more engine."""

from conformance.engine import Traits
from reference import sentinels as _sentinels


class ReferenceEngine:
    """Every stage of `reference` under the name of its engine method."""

    name = "reference"
    version = "0.1.0"
    traits = Traits(surplus_rows="keep last", caller_hashes="trust")

    # sentinels
    sentinels = staticmethod(_sentinels.sentinels)
    sentinels_from_hash = staticmethod(_sentinels.sentinels_from_hash)
    check_vocabulary = staticmethod(_sentinels.check_vocabulary)
