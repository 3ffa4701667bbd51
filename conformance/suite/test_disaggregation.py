"""DISAGGREGATION: encoder, prefill and decode as instances of their own: who encodes what, and how it arrives."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from conformance.compare import equal, holds, refuses
from conformance.engine import Engine
from conformance.oracles.disaggregation import raw_numbers
from conformance.oracles.lifecycle import drawn
from conformance.protocol.disaggregation import Instance
from conformance.requirement import SHOULD, requirement
from conformance.witness import EngineRaised
from conformance.world.doubles import encoded, image
from reference.items import Item


class Shared(NamedTuple):
    """Items in a drawing, which of them have embeddings, and how many encoders there are."""

    drawing: str
    encoders: int
    embedded: str = ""

    @property
    def items(self) -> tuple[Item, ...]:
        return drawn("a", self.drawing, self.embedded).items


class Admission(NamedTuple):
    """A request and an instance."""

    drawing: str
    instance: Instance
    embedded: str = ""

    @property
    def items(self) -> tuple[Item, ...]:
        return drawn("a", self.drawing, self.embedded).items


class Loads(NamedTuple):
    """What becomes of the items of a part in the cache: a word for each: hit, miss, raise, short."""

    outcomes: tuple[str, ...]


SHARES = {
    "one-item": Shared("ii", 3),
    "as-many-as-encoders": Shared("i.j.k", 3),
    "more-than-encoders": Shared("i.j.k.v.w.a.b", 2),
    "one-encoder": Shared("i.j.vv.k.aa", 1),
    "more-encoders-than-items": Shared("i.vv", 5),
    "three-modalities-in-turn": Shared("i.v.a.j.w.b.k", 3),
    "some-precomputed": Shared("i.j.k.v.w", 2, "jv"),
    "the-first-precomputed": Shared("i.j.k", 2, "i"),
    "all-precomputed": Shared("i.vv", 2, "iv"),
    "text": Shared("...", 2),
}
EVEN = {name: one for name, one in SHARES.items() if one.embedded != "iv" and name != "text"}
TEXT_ONLY, WITH_TOWER = Instance(has_tower=False, encoders=0), Instance(has_tower=True, encoders=0)


@requirement("DISAGGREGATION-01", needs="assign_parts", cases=SHARES, bugs=("G05",))
def test_every_raw_item_is_in_one_part(engine: Engine, case: Shared) -> None:
    """Each item that has to be encoded MUST be in exactly one part, and an item with an embedding in none."""
    parts = engine.assign_parts(case.items, [{}] * len(case.items), case.encoders)
    numbers = sorted(number for part in parts for number in part.items)
    equal(numbers, raw_numbers(case.items), "the items in all parts", where="item {}".format)


@requirement("DISAGGREGATION-02", needs="assign_parts", cases=SHARES)
def test_a_part_is_for_one_encoder(engine: Engine, case: Shared) -> None:
    """Each part MUST be for an encoder that there is, and MUST have items, of one modality, as its engine says it can."""
    parts = engine.assign_parts(case.items, [{}] * len(case.items), case.encoders)
    equal([n for n, part in enumerate(parts) if not 0 <= part.encoder < case.encoders], [], "parts for no encoder")
    modalities = [{case.items[number].modality for number in part.items} for part in parts]
    equal([len(kinds) for kinds in modalities], [1] * len(parts), "the modalities of each part", where="part {}".format)
    most = max((len(part.items) for part in parts), default=0)
    holds(most <= 1 or engine.traits.part_items == "ranges", f"a part of {most} items, though each has one")


@requirement("DISAGGREGATION-03", level=SHOULD, needs="assign_parts", cases=EVEN)
def test_no_encoder_has_two_items_more_than_another(engine: Engine, case: Shared) -> None:
    """Media of one size SHOULD be shared evenly: no encoder has two more of them than another."""
    parts = engine.assign_parts(case.items, [{}] * len(case.items), case.encoders)
    loads = Counter(dict.fromkeys(range(case.encoders), 0))
    loads.update(part.encoder for part in parts for _ in part.items)
    holds(max(loads.values()) - min(loads.values()) <= 1, f"the encoders have {dict(loads)} items")


@requirement("DISAGGREGATION-04", needs="assign_parts", cases=SHARES, bugs=("G06",))
def test_options_reach_the_encoder(engine: Engine, case: Shared) -> None:
    """The options of each item MUST reach its encoder, and those of no other item."""
    options = [{"max_pixels": 1000 + number, "fps": 2.0} if number % 3 else {} for number in range(len(case.items))]
    parts = engine.assign_parts(case.items, options, case.encoders)
    told = [(number, dict(mine)) for part in parts for number, mine in zip(part.items, part.options, strict=False)]
    equal(sorted(told, key=str), sorted([(n, options[n]) for n in raw_numbers(case.items)], key=str), "the options told")


@requirement("DISAGGREGATION-05", needs="assign_parts", cases={"no-encoder": 0, "fewer-than-none": -1})
def test_somebody_has_to_encode(engine: Engine, case: int) -> None:
    """Media MUST NOT be shared among fewer than one encoder."""
    refuses(lambda: engine.assign_parts(drawn("a", "i.j").items, [{}, {}], case), f"two pictures for {case} encoders")


@requirement(
    "DISAGGREGATION-06",
    needs="place_encoding",
    cases={
        "text-needs-nobody": (Admission("...", TEXT_ONLY), "nobody"),
        "embeddings-need-nobody": (Admission("i.vv", TEXT_ONLY, "iv"), "nobody"),
        "no-tower-and-two-encoders": (Admission("i.vv", Instance(False, 2)), "encoders"),
        "the-first-precomputed": (Admission("i.j", Instance(False, 1), "i"), "encoders"),
        "the-last-precomputed": (Admission("i.j", Instance(False, 1), "j"), "encoders"),
        "few-but-no-tower": (Admission("i", Instance(False, 1, True, 1)), "encoders"),
        "more-than-a-few": (Admission("i.j", Instance(True, 1, True, 1)), "encoders"),
        "few": (Admission("i", Instance(True, 1, False, 1)), "local"),
        "few-beside-embeddings": (Admission("i.j.k", Instance(True, 1, False, 1), "ik"), "local"),
        "fallback": (Admission("i.j", Instance(True, 0, True)), "local"),
    },
    bugs=("G05", "G11"),
)
def test_media_are_encoded_where_they_may_be(engine: Engine, case: tuple[Admission, str]) -> None:
    """Media MUST be encoded by encoders, unless the instance has a tower and its router allows it to encode by itself."""
    admission, expected = case
    equal(engine.place_encoding(admission.items, admission.instance), expected, "where the media are encoded")


@requirement(
    "DISAGGREGATION-07",
    needs="place_encoding",
    cases={
        "no-tower": Admission("i", TEXT_ONLY),
        "no-tower-and-a-router-that-allows-it": Admission("i", Instance(False, 0, True, 4)),
        "a-tower-and-a-router-that-does-not": Admission("i", WITH_TOWER),
        "one-of-two-precomputed": Admission("i.vv", TEXT_ONLY, "i"),
    },
    bugs=("G11",),
)
def test_nobody_answers_about_media_without_an_encoder(engine: Engine, case: Admission) -> None:
    """Media MUST be refused where nobody may encode them, with an error that says that an encoder is missing."""
    refuses(lambda: engine.place_encoding(case.items, case.instance), f"{case.drawing} for {case.instance}")
    try:
        engine.place_encoding(case.items, case.instance)
    except EngineRaised as raised:
        holds("encoder" in str(raised.error).lower(), f"the error does not name the encoder: {raised.summary}")


@requirement(
    "DISAGGREGATION-08",
    needs="encode_part",
    cases={
        "nothing-is-there": Loads(("miss", "miss", "miss")),
        "everything-is-there": Loads(("hit", "hit", "hit")),
        "the-middle-one-fails-to-load": Loads(("hit", "raise", "hit")),
        "the-first-one-is-short": Loads(("short", "hit", "hit")),
        "one-hit-among-misses": Loads(("miss", "hit", "miss", "raise", "short")),
        "one-item": Loads(("hit",)),
    },
    bugs=("G13",),
)
def test_only_what_is_missing_is_encoded(engine: Engine, case: Loads) -> None:
    """Of a part exactly the items without rows in the shared cache MUST be encoded, and all rows MUST be in their order."""
    items = [image(number, (8 * number, 8 * number + number)) for number in range(len(case.outcomes))]
    seen: list[int] = []
    rows = engine.encode_part(items, loader(items, case), lambda asked: [noted(item, seen) for item in asked])
    equal(rows, torch.cat([encoded(item) for item in items]), "the rows of the part", where="row {}".format)
    missing = [number for number, outcome in enumerate(case.outcomes) if outcome != "hit"]
    equal(seen, missing, "the items that were encoded", where="call {}".format)


def loader(items: list[Item], case: Loads) -> Any:
    """A cache in which the items are as the case says."""
    by_identity = dict(zip([item.identity for item in items], zip(items, case.outcomes, strict=True), strict=True))

    def load(identity: bytes) -> torch.Tensor | None:
        item, outcome = by_identity[identity]
        if outcome == "raise":
            raise OSError("this entry cannot be read")
        return {"hit": encoded(item), "miss": None, "short": encoded(item)[1:]}[outcome]

    return load


def noted(item: Item, seen: list[int]) -> torch.Tensor:
    """The rows of an item that is encoded, and a note of it."""
    seen.append(int(item.feature.item()))
    return encoded(item)


ROWS = {
    "float32": torch.arange(12, dtype=torch.float32).reshape(3, 4) - 0.5,
    "bfloat16-with-nan": torch.tensor([[1.5, float("nan")], [-0.0, float("-inf")]], dtype=torch.bfloat16),
    "float16": torch.tensor([[65504.0], [-6e-8]], dtype=torch.float16),
    "a-transposed-view": torch.arange(6.0).reshape(2, 3).T,
    "a-slice-of-rows": torch.arange(40.0).reshape(10, 4)[2:9:3],
    "no-rows": torch.empty(0, 8),
    "one-number": torch.tensor(3.25),
    "int64": torch.tensor([2**62, -1]),
    "bool": torch.tensor([[True, False]]),
    "a-mebibyte": torch.arange(1 << 18, dtype=torch.float32).reshape(512, 512),
}
CARRIES = ("open_carrier", "open_carrier.offer", "open_carrier.fetch", "open_carrier.withdraw", "open_carrier.close")


@requirement("DISAGGREGATION-09", needs=CARRIES, cases=ROWS)
def test_what_is_fetched_is_what_was_offered(engine: Engine, case: torch.Tensor) -> None:
    """What is fetched MUST be what was offered, bit for bit, as often as it is fetched, whatever became of the original."""
    for kind in engine.traits.carriers:
        carrier, rows = engine.open_carrier(kind), case.clone()
        ticket = carrier.offer(rows)
        rows.zero_()
        for _ in range(2):
            fetched = carrier.fetch(ticket)
            equal((fetched.dtype, fetched.shape), (case.dtype, case.shape), f"type and shape, by {kind}")
            equal(bits(fetched), bits(case), f"the rows, by {kind}", where="byte {}".format)
            fetched.zero_()
        carrier.close()


@requirement(
    "DISAGGREGATION-10",
    needs=CARRIES,
    cases={
        "withdrawn": lambda tickets: tickets[1],
        "one-bit-off": lambda tickets: bytes([tickets[0][0] ^ 1]) + tickets[0][1:],
        "two-tickets-crossed": lambda tickets: tickets[0][:8] + tickets[2][8:],
        "cut-short": lambda tickets: tickets[0][:-1],
        "empty": lambda tickets: b"",
    },
)
def test_a_ticket_without_an_offer_gives_nothing(engine: Engine, case: Callable[[list[bytes]], bytes]) -> None:
    """A ticket that was withdrawn, changed or cut short MUST be refused, and MUST NOT give what another one offers."""
    for kind in engine.traits.carriers:
        carrier = engine.open_carrier(kind)
        tickets = [carrier.offer(torch.full((4, 2), float(n))) for n in range(3)]
        carrier.withdraw(tickets[1])
        carrier.withdraw(tickets[1])
        refuses(partial(carrier.fetch, case(tickets)), f"a ticket without an offer, by {kind}")
        carrier.close()
        refuses(partial(carrier.fetch, tickets[0]), f"a ticket of a carrier that was closed, by {kind}")


@requirement("DISAGGREGATION-11", needs=(*CARRIES, "open_carrier.held_bytes"), cases={"three-offers": 3, "one-offer": 1})
def test_what_is_on_offer_can_be_seen(engine: Engine, case: int) -> None:
    """The bytes held MUST be at least those on offer, and none when all offers are withdrawn or the carrier is closed."""
    for kind in engine.traits.carriers:
        carrier = engine.open_carrier(kind)
        tickets = [carrier.offer(torch.ones(5, 2)) for _ in range(case)]
        holds(carrier.held_bytes() >= case * 40, f"{carrier.held_bytes()} bytes held of {case} offers of 40, by {kind}")
        for ticket in tickets[1:]:
            carrier.withdraw(ticket)
        holds(40 <= carrier.held_bytes() < 2 * 4096, f"{carrier.held_bytes()} bytes held of one offer, by {kind}")
        carrier.withdraw(tickets[0])
        equal(carrier.held_bytes(), 0, f"the bytes held of no offer, by {kind}")
        carrier.offer(torch.ones(5, 2))
        carrier.close()
        equal(carrier.held_bytes(), 0, f"the bytes held after the end, by {kind}")


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, in the order of its elements."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
