"""Many ranks: where each process runs, what all of them agree on, and which of them a request goes to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import torch

from conformance import returns as answer
from conformance.protocol.prefix_cache import Namespace, keys
from conformance.returns import Opens, WrongAnswer, returns
from reference.items import Item, Request

Policy: TypeAlias = Literal["round robin", "total requests", "total tokens", "bootstrap room", "prefix"]

POLICIES: tuple[Policy, ...] = ("round robin", "total requests", "total tokens", "bootstrap room", "prefix")

Build: TypeAlias = Callable[[Item], torch.Tensor]
"""A medium -> what the model is fed of it. It may raise, on any rank."""

Upload: TypeAlias = Callable[[torch.Tensor, int], torch.Tensor]
"""A tensor as it was built, and the number of a device -> a copy on that device. It may raise, on any rank."""

Encode: TypeAlias = Callable[[Item], torch.Tensor]
"""A medium -> its rows [rows, hidden]. It may raise, on any rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How many processes there are, and what they are for.

    tp: ranks that share each layer. pp: ranks that share the layers. dp: replicas of all that.
    attention_dp: into how many groups the tp ranks fall for attention, each with requests of its own.
    ep: ranks among which the experts are shared. With the trait `expert_ranks` "within tp" it divides tp; with "across dp"
    it is 1 or dp * tp.
    nodes: machines, with equally many processes on each. devices: those that a node has.
    first_device, device_step: on each node the processes take every `device_step`-th device from `first_device` on.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    attention_dp: int = 1
    ep: int = 1
    nodes: int = 1
    devices: int = 8
    first_device: int = 0
    device_step: int = 1


class Place(NamedTuple):
    """One process: where it runs, and its ranks.

    dp: replica * attention_dp + the group for attention: the number of those whose requests it computes.
    """

    node: int
    device: int
    dp: int
    pp: int
    tp: int
    ep: int


def places(value: Any) -> tuple[Place, ...]:
    """A sequence of places, each six ints."""
    found = []
    for one in answer._sequence(value, "a sequence of places"):
        numbers = answer.integers(one)
        if len(numbers) != len(Place._fields):
            raise WrongAnswer(f"a sequence of places, each with {', '.join(Place._fields)}")
        found.append(Place(*numbers))
    return tuple(found)


class Collectives(Protocol):
    """How the ranks of a group speak with one another: plain bytes and tensors, no objects.

    Every rank of the group enters the same calls in the same order, or none of them goes on. `torch.distributed` can
    stand behind it as it is.
    """

    rank: int
    size: int

    def broadcast(self, data: bytes, source: int) -> bytes:
        """The bytes of rank `source`, on every rank; what the others give does not matter."""
        ...

    def all_gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank by rank, on every rank. They may be of different lengths."""
        ...

    def all_gather_tensor(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensor of every rank by rank, on every rank. All have one shape and one dtype."""
        ...

    def barrier(self) -> None:
        """Nobody goes on before everybody is here."""
        ...

    def split(self, colour: int) -> "Collectives":
        """The ranks of this group that give the same colour, as a group of their own, in the same order."""
        ...


class RankInput(NamedTuple):
    """What a rank has of a request: its ids, int64 [n], and for each of its items what was built."""

    input_ids: Any
    media: tuple[torch.Tensor, ...]


def inputs_or_errors(value: Any) -> dict[str, RankInput | Exception]:
    """For each request, by its id, its ids and what was built of its items, or the exception that failed it."""
    wanted = "for each request, by its id, its ids and the tensors of its items, or an exception"
    if not isinstance(value, Mapping):
        raise WrongAnswer(wanted)
    return {id: one if isinstance(one, Exception) else _rank_input(one, wanted) for id, one in value.items()}


def _rank_input(value: Any, wanted: str) -> RankInput:
    pair = answer._sequence(value, wanted)
    if len(pair) != 2 or not all(isinstance(one, torch.Tensor) for one in pair[1]):
        raise WrongAnswer(wanted)
    return RankInput(answer.int64_array(pair[0]), tuple(pair[1]))


def groups(value: Any) -> tuple[tuple[int, ...], ...]:
    """For each rank a sequence of ints."""
    return tuple(answer.integers(one) for one in answer._sequence(value, "for each rank the numbers of its items"))


class Load(NamedTuple):
    """What a rank says of itself: the requests that it has, waiting and running, and their tokens.

    received: how many of the requests that the router sent it, since it is alive, had reached it by then.
    """

    requests: int
    tokens: int
    received: int


class Routed(NamedTuple):
    """What a router knows of a request.

    keys: for each full page, by position, what stands for everything up to its end. token_count: its positions.
    rank: where the caller wants it, or None. room: the bootstrap room in which it is handed over, or None.
    """

    keys: tuple[bytes | str | int, ...] = ()
    token_count: int = 0
    rank: int | None = None
    room: int | None = None


def keys_and_count(value: Any) -> Routed:
    """What a router knows of a request: keys, and the number of its positions."""
    pair = answer._sequence(value, "keys and the number of tokens")
    if len(pair) < 2:
        raise WrongAnswer("keys and the number of tokens")
    return Routed(keys(pair[0]), answer.integer(pair[1]))


class LoneRank:
    """The collectives of a group of one, which needs nobody."""

    rank, size = 0, 1

    def broadcast(self, data: bytes, source: int) -> bytes:
        return data

    def all_gather(self, data: bytes) -> list[bytes]:
        return [data]

    def all_gather_tensor(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        return [tensor]

    def barrier(self) -> None:
        """Everybody is here."""

    def split(self, colour: int) -> "LoneRank":
        return self


class Rank(Protocol):
    """What `open_rank` returns: one rank of those that compute a model together."""

    @returns(inputs_or_errors)
    def step(self, arrivals: Sequence[Request], build: Build, upload: Upload) -> Mapping[str, RankInput | Exception]:
        """Take in what has arrived: for each request of this rank's group its ids and its media, on this rank's device.

        arrivals: the requests that have come to this rank; other ranks than the first of a group are given none. Items have
        a feature, and ids have placeholders. build: see the trait `media_built`. upload: called once for each medium of
        the group, with the tensor as it was built, and the number of this rank, which is that of its device.

        Every rank of a group returns the same requests in the same order, and the same of each. A request that failed on
        any rank has on all of them an exception of one kind and with the same words in its place. One with an item that
        has no content fails before anything is built.
        """


class Router(Protocol):
    """What `open_router` returns: it says where requests go."""

    @returns(answer.integer)
    def route(self, request: Routed) -> int:
        """The rank that the request goes to; it counts among that rank's load from now on.

        That is the rank that the caller wants, if he wants one, whatever the policy. "round robin": one after the other.
        "total requests", "total tokens": one with the fewest. "bootstrap room": the room modulo the number of ranks,
        for whoever takes the request over computes the same. "prefix": where most of its keys are, unless that rank has
        too much to do.

        A rank that is dead is never chosen. Raises ValueError where it has been asked for, for a rank that there is not,
        for a request without a room where that is the policy, and where no rank is alive.
        """

    @returns(answer.anything)
    def report(self, rank: int, load: Load, sequence: int) -> Any:
        """What a rank says of itself. sequence: grows with each of its reports; they may come late, twice or never."""

    @returns(answer.nothing)
    def mark_dead(self, rank: int) -> None:
        """Send nothing more to this rank. What it had is gone."""

    @returns(answer.nothing)
    def mark_alive(self, rank: int) -> None:
        """This rank is there again, empty. Nothing happens to one that is alive."""


class Parallel(Protocol):
    """Many ranks: where each process runs, what all of them agree on, and which of them a request goes to."""

    @returns(places)
    def launch_plan(self, layout: Layout) -> Sequence[Place]:
        """The processes of a layout, on all nodes, in any order; or for each a tuple of the same six numbers.

        Raises ValueError, naming what cannot be, for a layout that cannot be launched, or not by this engine (see the
        trait `layouts`).
        """

    @returns(Opens(Rank, specimen=(LoneRank(), 1)))
    def open_rank(self, collectives: Collectives, groups: int) -> Rank:
        """One rank of a tensor-parallel group that falls into so many groups for attention: those of consecutive ranks.

        Called on every rank, in a thread of its own.
        """

    @returns(groups)
    def assign_items(self, sizes: Sequence[int], ranks: int) -> Sequence[Sequence[int]]:
        """For each rank the numbers of the items that it encodes. sizes: those of the items, at least 0 each."""

    @returns(answer.rows_or_error_each)
    def encode_on_rank(
        self, items: Sequence[Item], encode: Encode, collectives: Collectives
    ) -> Sequence[torch.Tensor | Exception]:
        """The rows of all items in order, on every rank, each encoded by one of them.

        Called on every rank, in a thread of its own, with the same items; their sizes are their token counts. An item
        whose encoder raised has on all ranks an exception of one kind and with the same words in its place.
        """

    @returns(keys_and_count)
    def routed(self, request: Request, namespace: Namespace, page: int) -> Routed:
        """What a router knows of a request, or a pair: the key of each of its full pages, and its number of positions.

        Keys are those of the prefix cache: two are the same exactly if everything up to the ends of their pages is, in the
        same namespace. A
        request with an item that has no positions cannot be told from others: it has no keys, or is refused with a
        ValueError.
        """

    @returns(Opens(Router, specimen=("total requests", 1)))
    def open_router(self, policy: Policy, ranks: int) -> Router:
        """A router for ranks that are all alive and empty. Raises ValueError for a policy that it does not know.

        Which policies an engine has is the trait `routing_policies`.
        """
