"""How the answers of `encode` are judged."""

from collections.abc import Collection, Sequence
from typing import TypeAlias

import torch

from conformance.compare import ACCIDENTS, Mismatch, equal, holds
from conformance.engine import Engine
from conformance.oracles import encoding as oracle
from conformance.oracles.encoding import Batch
from reference.items import Chunk, Request

Answers: TypeAlias = Sequence[torch.Tensor | Exception]


def rows_of(answer: torch.Tensor | Exception) -> torch.Tensor:
    """The rows, and not an error."""
    if isinstance(answer, Exception):
        raise Mismatch(f"observed {type(answer).__name__}: {answer}, expected rows")
    return answer


def serves(observed: Answers, batch: Batch, *, only: Collection[str] | None = None) -> None:
    """Every request of the batch, or those named, has its right rows."""
    for answer, (request, chunk) in _each(observed, batch):
        if only is None or request.id in only:
            _right(answer, request, chunk)


def fails(observed: Answers, batch: Batch, *, only: Collection[str]) -> None:
    """The requests named have an error that was meant in their places."""
    for answer, (request, _) in _each(observed, batch):
        if request.id in only:
            holds(isinstance(answer, Exception), f"request {request.id} must fail, but was given rows")
            holds(type(answer) not in ACCIDENTS, f"request {request.id} failed by accident: {type(answer).__name__}: {answer}")


def serves_in_conflict(observed: Answers, batch: Batch, engine: Engine) -> None:
    """Where an identity stands for items of several lengths, every request has its right rows, or fails if it may."""
    judge = {"encode": serves, "fail": serves_or_fails}[engine.traits.length_conflicts]
    judge(observed, batch)


def serves_or_fails(observed: Answers, batch: Batch) -> None:
    """No request is given rows that are not its own."""
    for answer, (request, chunk) in _each(observed, batch):
        if not isinstance(answer, Exception):
            _right(answer, request, chunk)


def _each(observed: Answers, batch: Batch) -> list[tuple[torch.Tensor | Exception, tuple[Request, Chunk]]]:
    equal(len(observed), len(batch), "the number of answers to a batch")
    return list(zip(observed, batch, strict=True))


def _right(answer: torch.Tensor | Exception, request: Request, chunk: Chunk) -> None:
    expected = oracle.expected(request, chunk)
    places = oracle.media_positions(request, chunk)
    if isinstance(answer, Exception):
        raise Mismatch(f"request {request.id}: observed {type(answer).__name__}: {answer}, expected {len(expected)} rows")
    if len(expected) == 0:
        equal(len(answer), 0, f"the number of rows of request {request.id}, which has no media in its chunk")
    else:
        equal(answer, expected, f"the rows of request {request.id}", where=lambda row: f"position {places[row]}")
