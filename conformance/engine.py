"""The engine protocol: what the suite asks an engine.

An engine is any object with a `name`, a `version` and whichever of these methods it supports. Every method is
optional; what an engine can do is found by looking. No base class is needed. Data crosses as plain values: numpy
arrays, torch tensors, ints, bytes and the vocabulary of `reference.items`.

Rules that hold for every method:
* ids are signed 64-bit integers; spans are inclusive at both ends; positions count from 0 in the whole, expanded prompt;
* arguments are never changed: an engine that needs to write makes a copy;
* input that cannot be right is refused with an error that was meant (a ValueError, a TypeError, an error class of the
  engine's own), not with one that happened (an IndexError, an AttributeError, an AssertionError).
"""

from dataclasses import dataclass, fields
from typing import Literal, Protocol

from conformance.profile import Profile as Profile
from conformance.protocol.disaggregation import Disaggregation
from conformance.protocol.encoder_cache import EncoderCaches
from conformance.protocol.encoding import Encoding
from conformance.protocol.identity import Identity
from conformance.protocol.kernels import ROTATIONS, Kernels
from conformance.protocol.lifecycle import Lifecycle
from conformance.protocol.media import Media
from conformance.protocol.merging import Merging
from conformance.protocol.parallel import POLICIES, Parallel
from conformance.protocol.pipeline import Pipeline
from conformance.protocol.pipeline_ranks import PipelineRanks
from conformance.protocol.placeholders import Placeholders
from conformance.protocol.planning import FAMILIES, Planning
from conformance.protocol.positions import FAMILIES as NUMBERED
from conformance.protocol.positions import Positions
from conformance.protocol.prefix_cache import PrefixCaches
from conformance.protocol.preprocessing import Preprocessing
from conformance.protocol.processors import FAMILIES as PROCESSED
from conformance.protocol.processors import Processors
from conformance.protocol.pruning import Pruning
from conformance.protocol.scheduling import Budget, Scheduling
from conformance.protocol.sentinels import Sentinels
from conformance.protocol.speculation import Speculation
from conformance.protocol.transport import TRANSPORTS, Transport
from conformance.protocol.transport_wire import TransportWire


class EngineNotLoaded(Exception):
    """The engine that was named cannot be had; the message says why, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is a choice of an engine and not a fault. Rules read traits; no rule knows an engine by name.

    largest_vocabulary: ids below this number may be text; sentinels must not be.
    surplus_rows: what happens to more rows than positions: they are refused, or the last ones are kept.
    caller_hashes: what a hash from the caller does: it stands for the item ("trust"), or it is refused ("reject").
    length_conflicts: what happens to an item whose identity is known with another token count: it is encoded like any
        other ("encode"), or its request fails ("fail").
    splits_items: whether a chunk may end inside an item where the budget allows it.
    interleaved_items: which items of a prompt may take turns: any, or none but a video and its recording in models that are
        made for it; then rows of others are not asked for.
    alignment: whether every chunk ends where it should, or may also end before an item, and anywhere when no end where it
        should is within the budget.
    knobs: the limits of a `Budget` that the engine has; it may refuse one that sets another.
    prefix_page: the one page size of its prefix caches; None: whatever is asked for.
    prefix_items: whether a matched prefix may end inside an item ("cut") or not ("whole").
    planned_families: the families of models whose tokens the engine counts from sizes; others are not asked for.
    processed_families: the families of models whose prompts the engine processes; others are not asked for.
    bound_families: the families of models whose processor's output the engine takes; others are not asked for.
    frame_placeholders: what fills the places of a video whose frames the model owner's processor writes as pictures: its token
        of pictures, or that of videos. The model sees rows there, and neither.
    numbered_families: the families of models whose positions the engine numbers; others are not asked for.
    backgrounds: who chooses the colour behind transparent pixels: the caller, or the engine.
    animations: what becomes of an animated picture: its first frame is the picture, or it is refused.
    frame_multiple: the number of frames that are sampled by rate is a multiple of this, rounded either way.
    deepstack_ranks: which pipeline ranks may own a layer that takes deepstack rows: any, or the first only, and another
        split is refused.
    draft_positions: where a draft model stands that takes the embedding of one token and the hidden state of the token
        before it: at the position of the hidden state, as it was trained with EAGLE, or of the embedded token.
    layouts: kinds of layouts that the engine launches beside tp, pp and dp on one node: others are not asked for.
    expert_ranks: what the ranks that share the experts are: a part of the tp ranks, or all ranks of a pipeline stage.
    media_built: where media are made into tensors: once, on the first rank of a group, or on every rank.
    routing_policies: those that the engine's router has; others are not asked for.
    report_order: whether one report of a rank can overtake another on its way to the router ("any") or not ("kept").
    transports: the ways that the engine has from one process to another; others are not asked for.
    channel_readers: the most readers that one of its channels may have; None: any number.
    bounded_channels: whether a channel is opened with bounds of its own, of its room in shared memory first of all, or the
        host alone bounds it.
    wrapped_copies: the most copies in which a list with packets in it may be sent; None: any number. An engine that shares a
        list before it wraps any of it has no more than one.
    signed_packets: whether what names a tensor in transport is refused unless this channel made it for this reader; where
        not, whoever can write to a reader is trusted.
    part_items: whether a part that an encoder is asked for may have several items of a request, or has one.
    repeated_parts: what becomes of a part that arrives a second time: it is dropped, or its request fails.
    rooms: who chooses the number of a room.
    carriers: the kinds of carriers that can be opened where the suite runs; others are not asked for.
    caller_chooses: what of a live request its caller chooses, and not the engine: its id ("ids"), and which chunk of it a step
        computes ("chunks"). Wrong choices of what an engine chooses itself are not asked for.
    rotations: the forms of M-RoPE that the engine applies to heads, and "table" where it looks positions up in a table, so
        that some lie outside; others are not asked for.
    profile: whose exact values the engine promises beside the core ("core": nobody's).
    """

    largest_vocabulary: int = 1_000_000
    surplus_rows: Literal["reject", "keep last"] = "reject"
    caller_hashes: Literal["trust", "reject"] = "trust"
    length_conflicts: Literal["encode", "fail"] = "encode"
    splits_items: bool = True
    interleaved_items: Literal["any", "films"] = "any"
    alignment: Literal["always", "but for media"] = "always"
    knobs: tuple[str, ...] = tuple(knob.name for knob in fields(Budget))
    prefix_page: int | None = None
    prefix_items: Literal["cut", "whole"] = "cut"
    planned_families: tuple[str, ...] = FAMILIES
    processed_families: tuple[str, ...] = PROCESSED
    bound_families: tuple[str, ...] = PROCESSED
    frame_placeholders: Literal["picture", "video"] = "picture"
    numbered_families: tuple[str, ...] = NUMBERED
    backgrounds: Literal["caller", "engine"] = "caller"
    animations: Literal["first frame", "reject"] = "first frame"
    frame_multiple: int = 1
    deepstack_ranks: Literal["any", "first"] = "any"
    draft_positions: Literal["hidden state", "token"] = "hidden state"
    layouts: tuple[str, ...] = ("attention dp", "dp across nodes", "pp across nodes", "device step")
    expert_ranks: Literal["within tp", "across dp"] = "within tp"
    media_built: Literal["once", "every rank"] = "once"
    routing_policies: tuple[str, ...] = POLICIES
    report_order: Literal["any", "kept"] = "any"
    transports: tuple[str, ...] = TRANSPORTS
    channel_readers: int | None = None
    bounded_channels: bool = True
    wrapped_copies: int | None = None
    signed_packets: bool = True
    part_items: Literal["ranges", "one"] = "ranges"
    repeated_parts: Literal["drop", "fail"] = "drop"
    rooms: Literal["caller", "engine"] = "caller"
    carriers: tuple[str, ...] = ("memory",)
    caller_chooses: tuple[str, ...] = ("ids", "chunks")
    rotations: tuple[str, ...] = ROTATIONS
    profile: Profile = Profile.CORE


class Engine(
    Media,
    Planning,
    Identity,
    Sentinels,
    Placeholders,
    Processors,
    Preprocessing,
    Positions,
    PrefixCaches,
    Scheduling,
    EncoderCaches,
    Encoding,
    Pruning,
    Merging,
    PipelineRanks,
    Speculation,
    Transport,
    TransportWire,
    Lifecycle,
    Parallel,
    Disaggregation,
    Kernels,
    Pipeline,
    Protocol,
):
    """Everything that the suite can ask, stage by stage in the order in which data flows. Implement any part of it."""

    name: str
    version: str
    traits: Traits

    def can(self, method: str) -> bool:
        """Whether the engine has this method. Rules ask; engines need not have it, for it is answered by looking."""
        ...


METHODS = [name for stage in Engine.__bases__ for name, member in vars(stage).items() if hasattr(member, "reader")]
"""The names of all methods of the protocol, in its order."""


def families(method: str, traits: Traits) -> tuple[str, ...]:
    """The families of models, the policies, or the choices, for which an engine with these traits has a form of this method.

    None if it has one form for all.
    """
    if hasattr(vars(Planning).get(method), "reader"):
        return traits.planned_families
    named = {
        "process": traits.processed_families,
        "bind_output": traits.bound_families,
        "positions": traits.numbered_families,
        "open_lifecycle": traits.caller_chooses,
        "apply_mrope": traits.rotations,
        "open_router": tuple(policy.replace(" ", "-") for policy in traits.routing_policies),
    }
    return named.get(method, ())
