"""A bench for ranks: requests that come to groups of them, builders and devices that fail where they are told, and encoders."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from conformance.compare import Mismatch, equal, holds
from conformance.engine import Engine
from conformance.protocol.parallel import Layout, Rank, RankInput
from conformance.suite.parallel_cases import Arrivals, Fault, Shares
from conformance.world import doubles
from conformance.world.prompts import draw
from conformance.world.ranks import Devices, Member, Rendezvous
from reference.items import Item, Request

WIDTHS = {"i": torch.float32, "j": torch.bfloat16, "k": torch.int64, "v": torch.bool, "w": torch.float16, "a": torch.uint8}
"""Of which dtype the tensor is that a medium is built into."""


def launched(engine: Engine, layouts: tuple[Layout, ...]) -> list[Layout]:
    """Of some layouts those that the engine launches, by its traits."""
    return [one for one in layouts if kinds(one, engine.traits.expert_ranks) <= set(engine.traits.layouts)]


def kinds(layout: Layout, expert_ranks: str) -> set[str]:
    """What a layout has beside ranks on one node, in the words of the trait `layouts`; "" for what the engine cannot mean."""
    within, across = layout.tp % layout.ep == 0, layout.ep in (1, layout.dp * layout.tp)
    asked = {
        "attention dp": layout.attention_dp > 1,
        "dp across nodes": layout.dp > 1 and layout.nodes > 1,
        "pp across nodes": layout.pp > 1 and layout.nodes > 1,
        "device step": layout.device_step > 1,
        "": not (within if expert_ranks == "within tp" else across),
    }
    return {kind for kind, is_asked in asked.items() if is_asked}


def named(drawing: str, id: str) -> Request:
    """The request of a drawing. The feature of a medium is its letter; question marks are a picture that has none."""
    prompt = draw(drawing.replace("?", "k"))
    letters = dict.fromkeys(letter for letter in drawing if letter.isalpha() or letter == "?")
    items = [
        replace(item, feature=None if letter == "?" else torch.tensor([[float(ord(letter))]]))
        for letter, item in zip(letters, prompt.items, strict=True)
    ]
    return Request(id=id, input_ids=prompt.input_ids, items=tuple(items))


def built(item: Item) -> torch.Tensor:
    """What the bench builds of a medium: [positions, 3] of the dtype of its letter, with the number of each element."""
    letter = _letter(item)
    return (torch.arange(3 * item.token_count).reshape(-1, 3) + ord(letter)).to(WIDTHS[letter])


class Bench:
    """A tensor-parallel group of an engine, and what happened on it.

    answers: for each rank and step what the rank returned. builds: on which rank each medium was built, and of which
    letter. hollow: the ranks that were to build a medium without content. raised: what has failed.
    """

    def __init__(self, engine: Engine, case: Arrivals) -> None:
        self.case = case
        self.world = Rendezvous(case.ranks)
        self.devices = Devices(case.ranks)
        self.ranks: list[Rank] = []
        self.builds: list[tuple[int, str]] = []
        self.hollow: list[int] = []
        self.raised: set[Fault] = set()
        self.ended = self.world.run(lambda member: self._rank(engine, member))
        self.answers = [[] if isinstance(one, BaseException) else one for one in self.ended]

    def requests(self, step: int, group: int) -> list[Request]:
        """What comes to a group in a step."""
        return [named(one, f"{step}.{group}.{n}") for n, one in enumerate(self.case.steps[step][group])]

    def group(self, rank: int) -> int:
        """The group of a rank."""
        return rank // (self.case.ranks // self.case.groups)

    def _rank(self, engine: Engine, member: Member) -> list[Mapping[str, RankInput | Exception]]:
        rank = engine.open_rank(member, self.case.groups)
        self.ranks.append(rank)  # what they hold is held until the bench is gone
        is_first = member.rank % (self.case.ranks // self.case.groups) == 0
        return [
            rank.step(
                self.requests(number, self.group(member.rank)) if is_first else [],
                lambda item: self._build(item, member.rank, number),  # noqa: B023
                lambda tensor, device: self._upload(tensor, device, member.rank, number),  # noqa: B023
            )
            for number in range(len(self.case.steps))
        ]

    def _build(self, item: Item, rank: int, step: int) -> torch.Tensor:
        if item.feature is None:
            self.hollow.append(rank)
            raise ValueError("there is nothing to build of")
        self.builds.append((rank, _letter(item)))
        self._fail(Fault("build", rank, _letter(item), step))
        return built(item)

    def _upload(self, tensor: torch.Tensor, device: int, rank: int, step: int) -> torch.Tensor:
        self._fail(Fault("upload", rank, next((one for one, dtype in WIDTHS.items() if dtype == tensor.dtype), "?"), step))
        return self.devices.copy(rank, tensor, device)

    def _fail(self, now: Fault) -> None:
        for fault in self.case.faults:
            if (fault.what, fault.rank, fault.step) == (now.what, now.rank, now.step) and now.letters in fault.letters:
                self.raised.add(now)
                raise OSError(f"rank {now.rank} cannot {now.what} {now.letters}")


def together(bench: Bench) -> None:
    """The ranks entered the same collectives, and each of them came to its end."""
    holds(not bench.world.parted, bench.world.parted)
    for rank, ended in enumerate(bench.ended):
        if isinstance(ended, BaseException):
            raise Mismatch(f"rank {rank} ended with {ended}") from ended


def agreed(bench: Bench) -> None:
    """Every rank has what comes to its group: ids and media, or the same error on all where something failed."""
    together(bench)
    for step in range(len(bench.case.steps)):
        for rank in range(bench.case.ranks):
            _expect(bench, step, rank)


def _expect(bench: Bench, step: int, rank: int) -> None:
    where, observed = f"on rank {rank} in step {step}", bench.answers[rank][step]
    requests = bench.requests(step, bench.group(rank))
    equal(list(observed), [one.id for one in requests], f"the requests {where}")
    first = bench.group(rank) * (bench.case.ranks // bench.case.groups)
    for request in requests:
        one, letters = observed[request.id], {_letter(item) for item in request.items if item.feature is not None}
        faults = [
            f for f in bench.raised if f.step == step and bench.group(f.rank) == bench.group(rank) and f.letters in letters
        ]
        if faults or any(item.feature is None for item in request.items):
            holds(isinstance(one, Exception), f"{where} request {request.id} was taken in, and had failed")
            equal(_words(one), _words(bench.answers[first][step][request.id]), f"the error {where}")
        else:
            _expect_input(one, request, where)


def _expect_input(one: RankInput | Exception, request: Request, where: str) -> None:
    if isinstance(one, Exception):
        raise Mismatch(f"{where} request {request.id} failed, and nothing of it had: {one}")
    equal(one.input_ids, request.input_ids, f"the ids of request {request.id} {where}")
    equal(len(one.media), len(request.items), f"the number of media of request {request.id} {where}")
    for number, (tensor, item) in enumerate(zip(one.media, request.items, strict=True)):
        equal(tensor, built(item), f"medium {number} of request {request.id} {where}", where="row {}".format)


def _words(error: Any) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, Exception) else "no error"


def _letter(item: Item) -> str:
    return chr(int(item.feature.item()))


class Sharing:
    """Encoder ranks of an engine at work on some items. encoded: which rank encoded which item."""

    def __init__(self, engine: Engine, case: Shares) -> None:
        self.case = case
        self.encoded: list[tuple[int, int]] = []
        firsts = [sum(case.sizes[:number]) for number in range(len(case.sizes))]
        spans = [[(first, first + size - 1)] if size else [] for first, size in zip(firsts, case.sizes, strict=True)]
        self.items = [doubles.image(number, *span) for number, span in enumerate(spans)]
        self.world = Rendezvous(case.ranks)
        self.ended = self.world.run(lambda member: engine.encode_on_rank(self.items, self._encoder(member.rank), member))

    def _encoder(self, rank: int) -> Any:
        def encode(item: Item) -> torch.Tensor:
            number = int(item.feature.item())
            self.encoded.append((rank, number))
            if number in self.case.failing:
                raise OSError(f"rank {rank} cannot encode item {number}")
            return doubles.encoded(item)

        return encode


def shared(sharing: Sharing) -> None:
    """Every rank has the rows of all items in order, and the same error where the encoder failed."""
    holds(not sharing.world.parted, sharing.world.parted)
    words: list[str] = []  # those of the first rank
    for rank, ended in enumerate(sharing.ended):
        if isinstance(ended, BaseException):
            raise Mismatch(f"rank {rank} ended with {ended}") from ended
        equal(len(ended), len(sharing.items), f"the number of items on rank {rank}")
        words = words or [_words(one) for one in ended]
        for number, (rows, item) in enumerate(zip(ended, sharing.items, strict=True)):
            if number in sharing.case.failing:
                holds(isinstance(rows, Exception), f"item {number} has rows on rank {rank}, and its encoder had failed")
                equal(_words(rows), words[number], f"the error of item {number} on rank {rank}")
            else:
                equal(rows, doubles.encoded(item), f"item {number} on rank {rank}", where="row {}".format)
