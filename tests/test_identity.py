"""What the reference promises about identities beyond the requirements: its own choices, and what its errors say."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from conformance.adapters.reference import ReferenceEngine
from conformance.elsewhere import in_a_fresh_process
from conformance.engine import Traits
from conformance.oracles import identity as oracle
from conformance.requirement import requirements
from conformance.suite.identity_cases import ANYTHING, image
from conformance.suite.identity_hash_cases import ADOPTED, MALFORMED, WRONG_NUMBER
from conformance.trial import Verdict, run
from conformance.witness import Witness
from reference.identity import adopt_caller_hashes, combine_identities, data_hash, hash_feature, identify, tensor_hash
from reference.items import Item, Modality

RAMP = torch.arange(6.0).reshape(2, 3)
TEXT: Any = "text"
LOOP: list[Any] = [RAMP]
LOOP.append(LOOP)
HOLLOW_LOOP: list[Any] = []
HOLLOW_LOOP.append(HOLLOW_LOOP)


def test_the_encoding_does_not_change_from_one_version_to_the_next() -> None:
    assert identify(image(RAMP)).hex() == "5029ee0028085d99e0d56bbe843bb5e877201c1526a055c0fc3c5f1babc5d47b"
    assert (
        combine_identities([bytes(32), bytes(32)]).hex() == "7cc647f6db2596a477815cb3dcb4a4ecacca8bdb2e3e43b4b55368cc86a27ea9"
    )


@pytest.mark.parametrize(
    "twin",
    [RAMP.numpy(), RAMP.numpy().astype(">f4"), torch.complex(RAMP, RAMP).conj().real, RAMP.to(torch.float64).float()],
    ids=["array", "big-endian array", "lazy conjugate", "through a wider dtype"],
)
def test_equal_values_in_another_container_are_equal_content(twin: Any) -> None:
    assert identify(image(twin)) == identify(image(RAMP))


def test_a_tuple_is_a_list_and_a_buffer_is_bytes() -> None:
    assert identify(image((RAMP, RAMP))) == identify(image([RAMP, RAMP]))
    assert identify(image(bytearray(b"ac"))) == identify(image(memoryview(b"abcd")[::2])) == identify(image(b"ac"))


def test_a_lazy_conjugate_is_what_it_stands_for() -> None:
    number = torch.tensor([1 + 2j])
    assert identify(image(number.conj())) == identify(image(number.conj().resolve_conj())) != identify(image(number))


def test_every_identity_has_32_bytes() -> None:
    assert {len(identify(item)) for item in ANYTHING.values()} == {32}


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ([RAMP, {"mask": None}], "feature[1]['mask'] is None, which has no stable content"),
        ([RAMP, [np.array([object()])]], "feature[1][0] is ndarray of object; only plain arrays"),
        (np.ma.masked_array([1, 2], [True, False]), "feature is MaskedArray of int64; only plain arrays"),
        (np.array([1], dtype=np.longdouble), "only plain arrays of numbers or bools have stable bytes"),
        (RAMP.to_sparse(), "feature is a sparse, nested, quantized or meta tensor"),
        (RAMP.to("meta"), "feature is a sparse, nested, quantized or meta tensor"),
        ([{1, 2}], "feature[0] is set, which has no stable content"),
        ("https://example.com/cat.png", "feature is str, which has no stable content"),
        (lambda: RAMP, "feature is function, which has no stable content"),
    ],
)
def test_what_has_no_content_is_named_with_its_place(feature: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        identify(image(feature))
    assert message in str(caught.value)


def test_a_field_without_content_is_named_with_its_place() -> None:
    with pytest.raises(TypeError, match=r"fields\['sizes'\]\[0\] is set"):
        identify(image(RAMP, sizes=[{1}]))


def test_an_empty_item_and_an_endless_one_are_refused() -> None:
    with pytest.raises(ValueError, match="this video carries no content"):
        identify(Item(modality=Modality.VIDEO))
    with pytest.raises(ValueError, match="nested too deep, or contains itself"):
        identify(image(LOOP))
    with pytest.raises(ValueError, match="this image carries no content"):
        identify(image(HOLLOW_LOOP))


@pytest.mark.parametrize(
    ("hashes", "problem"),
    [
        ({Modality.IMAGE: ["a"]}, "image: 1 hashes for 2 items; all hashes of the request are ignored"),
        ({Modality.IMAGE: []}, "image: 0 hashes for 2 items; all hashes of the request are ignored"),
        ({Modality.IMAGE: "ab"}, "image: one string instead of a list for 2 items; all hashes of the request are ignored"),
        ({Modality.IMAGE: ["a", "0x1"]}, "item 1 (image): '0x1' is not 1 to 16 hexadecimal digits; ignored"),
    ],
)
def test_a_problem_with_a_hash_is_a_sentence(hashes: dict[Modality, Any], problem: str) -> None:
    assert adopt_caller_hashes([image(RAMP)] * 2, hashes)[1] == [problem]


def test_a_caller_may_name_the_items_of_one_modality_only() -> None:
    items = [image(RAMP), Item(modality=Modality.AUDIO, feature=RAMP), image(RAMP)]
    assert adopt_caller_hashes(items, {Modality.AUDIO: ["3"]}) == ([None, 3, None], [])
    assert adopt_caller_hashes(items, {Modality.IMAGE: ["1", "2"]}) == ([1, None, 2], [])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data_hash(TEXT), "data is str; only bytes have a data hash"),
        (lambda: tensor_hash([RAMP, [3]]), "tensors[1][0] is int; only tensors and lists of tensors"),
        (lambda: hash_feature([]), "feature is list; a hash is for a tensor, an array, bytes or a list of tensors"),
        (lambda: hash_feature(np.array([None])), "feature is ndarray of object; only plain arrays"),
        (lambda: combine_identities([TEXT]), "identities[0] is str; identities are bytes"),
    ],
)
def test_the_other_errors(call: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


def test_nothing_is_changed() -> None:
    picture = Image.new("P", (2, 2))
    before = (picture.getpalette("RGBA"), dict(picture.info), picture.tobytes())
    identify(image(picture))
    assert (picture.getpalette("RGBA"), picture.info, picture.tobytes()) == before


class Suspicious(ReferenceEngine):
    """An engine that adopts nothing, and says so."""

    traits = Traits(caller_hashes="reject")

    @staticmethod
    def adopt_caller_hashes(items: Sequence[Item], hashes: Any) -> tuple[list[int | None], list[str]]:
        return [None] * len(items), ["hashes from callers are not trusted"]


class Inconsistent(ReferenceEngine):
    """An engine that claims to trust nobody, and adopts."""

    traits = Traits(caller_hashes="reject")


@pytest.mark.parametrize("id", ["IDENTITY-23", "IDENTITY-24", "IDENTITY-25", "IDENTITY-26"])
def test_an_engine_that_rejects_hashes_passes_without_adopting_any(id: str) -> None:
    for case in requirements[id].cases.values():
        assert run(requirements[id], case, Suspicious()).verdict is Verdict.PASS


def test_an_engine_that_rejects_hashes_fails_when_it_adopts_one() -> None:
    assert run(requirements["IDENTITY-23"], ADOPTED["in-order"], Inconsistent()).verdict is Verdict.FAIL


def test_the_oracle_knows_the_named_cases() -> None:
    for case in [*ADOPTED.values(), *WRONG_NUMBER.values(), *MALFORMED.values()]:
        assert oracle.adopted(case.modalities, case.hashes)[0] == case.expected


def test_an_engine_that_cannot_be_loaded_again_is_asked_here() -> None:
    engine = Witness(ReferenceEngine())
    assert in_a_fresh_process(engine, oracle.identities) == [engine.identify(item) for item in oracle.specimens()]


FORK = """
import os, signal
import torch
from reference.identity import identify
from reference.items import Item, Modality

os.cpu_count = lambda: 2
large = Item(modality=Modality.IMAGE, feature=torch.arange(4 << 20))
known = identify(large)
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(identify(large) != known)
_, status = os.waitpid(child, 0)
raise SystemExit(status)
"""


def test_a_fork_identifies_large_features_as_its_parent_did() -> None:
    subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        check=True,
        timeout=60,
        cwd=Path(__file__).parent.parent,
    )


def test_threads_change_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    large = image(torch.arange((8 << 20) + 5).to(torch.uint8))
    made = []
    for processors in (1, 2, 16, None):
        monkeypatch.setattr("os.cpu_count", lambda processors=processors: processors)
        made.append(identify(large))
    assert made == [made[0]] * 4
