import pytest

from conformance.adapters.reference import ReferenceEngine
from conformance.witness import Witness


@pytest.fixture
def engine() -> Witness:
    return Witness(ReferenceEngine(), spec="reference")
