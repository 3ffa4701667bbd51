"""The server: whatever the processes, the same tokens as one, and an outcome for every request."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance.world.checkpoint import PLACEHOLDER, tiny_qwen2_vl
from conformance.world.pictures import PHOTOS, names, pictures, render
from reference.serving.group import Failed, agree
from reference.serving.nursery import Nursery
from reference.serving.reading import policy_of, read_request
from reference.serving.running import adopt
from reference.serving.service import Layout, ProcessLost, RequestFailed, Service
from reference.transport.wire import encode_value
from tests.serving_world import FAILS_AT

HOME = Path(__file__).parent.parent
CHECKPOINT = "tests.serving_world:fragile_qwen2_vl"
SHARED_MEMORY = Path("/dev/shm")
MEDIA = (str(PHOTOS),)
LIMIT = 12
PROMPTS = (
    "What is this? {chelsea}Tell me.",
    "{rocket}",
    "There is nothing to see.",
    "{coffee}{astronaut} and once more {coffee}: which",
    "{chelsea}{chelsea}",
)
LAYOUTS = {
    "one-rank": Layout(media=MEDIA),
    "two-ranks": Layout(tp=2, media=MEDIA),
    "two-ranks-in-chunks": Layout(tp=2, chunk_length=7, media=MEDIA),
    "apart": Layout(disaggregated=True, media=MEDIA),
    "apart-in-chunks": Layout(disaggregated=True, chunk_length=7, media=MEDIA),
}
FAILING = "x" * (FAILS_AT - 4)
"""The prompt alone is fine; four tokens behind it the model fails."""


@cache
def one_process(prompt: str) -> list[int]:
    """What transformers generates."""
    checkpoint = tiny_qwen2_vl()
    text = [render(prompt, checkpoint.placeholder)]
    given = checkpoint.processor(text=text, images=pictures(prompt) or None, return_tensors="pt")
    with torch.no_grad():
        made = checkpoint.model.generate(**given, max_new_tokens=LIMIT, do_sample=False)
    checkpoint.model.model.rope_deltas = None
    tokens: list[int] = made[0, given["input_ids"].shape[1] :].tolist()
    return tokens


def submit(service: Service, id: str, prompt: str, limit: int = LIMIT) -> None:
    images = [str(PHOTOS / f"{name}.png") for name in names(prompt)]
    service.submit(id, render(prompt, PLACEHOLDER), images, limit)


def is_there(pid: int) -> bool:
    """Whether a process is running."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pids: list[int], within_s: float = 5.0) -> bool:
    """Whether all processes end in this time."""
    until = time.monotonic() + within_s
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_there, pids))


OPENED: list[Service] = []


def opened(nursery: Nursery, layout: Layout) -> Service:
    """A server that is closed with its test."""
    OPENED.append(Service(nursery, layout))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def all_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def segments_of(service: Service) -> list[Path]:
    """The shared memory that processes of a server own."""
    return [path for pid in service.pids.values() for path in SHARED_MEMORY.glob(f"mmproof-*-{pid}-*")]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    before = Path.cwd()
    os.chdir(HOME)
    made = Nursery(CHECKPOINT)
    os.chdir(before)
    yield made
    made.close()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_tokens_are_those_of_one_process(nursery: Nursery, layout: Layout) -> None:
    service = opened(nursery, layout)
    for prompt in PROMPTS:
        submit(service, prompt, prompt)
    assert {prompt: service.answer(prompt) for prompt in PROMPTS} == {prompt: one_process(prompt) for prompt in PROMPTS}


@pytest.mark.parametrize("name", ["two-ranks", "apart"])
def test_a_failure_in_the_middle_is_that_of_one_request(nursery: Nursery, name: str) -> None:
    service = opened(nursery, LAYOUTS[name])
    submit(service, "before", PROMPTS[0])
    submit(service, "failing", FAILING)
    submit(service, "beside", PROMPTS[3])
    with pytest.raises(RequestFailed, match="RuntimeError: this rank has no more memory"):
        service.answer("failing")
    submit(service, "after", PROMPTS[1])
    assert service.answer("before") == one_process(PROMPTS[0])
    assert service.answer("beside") == one_process(PROMPTS[3])
    assert service.answer("after") == one_process(PROMPTS[1])
    submit(service, "short of it", FAILING, 4)
    assert len(service.answer("short of it")) == 4


@pytest.mark.parametrize("name", ["two-ranks", "apart"])
def test_what_cannot_be_read_fails_alone(nursery: Nursery, name: str) -> None:
    service = opened(nursery, LAYOUTS[name])
    picture = base64.b64encode((PHOTOS / "rocket.png").read_bytes()).decode()
    service.submit("a file", PLACEHOLDER, ["/etc/passwd"])
    service.submit("no picture", PLACEHOLDER, ["data:image/png;base64,AAAA"])
    service.submit("one too few", PLACEHOLDER * 2, [str(PHOTOS / "rocket.png")])
    service.submit("empty", "")
    service.submit("no tokens", "text", limit=0)
    service.submit("a data uri", PLACEHOLDER, [f"data:image/png;base64,{picture}"], LIMIT)
    with pytest.raises(ValueError, match="is alive"):
        service.submit("a data uri", "text")
    for id, reason in {
        "a file": "MediaError",
        "no picture": "MediaError",
        "one too few": "Error: ",
        "empty": "an empty prompt",
        "no tokens": "at least one token",
    }.items():
        with pytest.raises(RequestFailed, match=reason):
            service.answer(id)
    assert service.answer("a data uri") == one_process("{rocket}")


@pytest.mark.parametrize("name", ["two-ranks", "apart"])
def test_an_aborted_request_has_no_answer_and_its_id_is_free(nursery: Nursery, name: str) -> None:
    service = opened(nursery, LAYOUTS[name])
    submit(service, "a", PROMPTS[0], 1000)
    submit(service, "b", PROMPTS[1], 1000)
    service.poll(0.3)
    service.abort("a")
    service.abort("never was")
    submit(service, "a", PROMPTS[3])
    assert service.answer("a") == one_process(PROMPTS[3])
    service.abort("b")


VICTIMS = [
    (name, victim) for name, layout in LAYOUTS.items() if name in ("two-ranks", "apart") for victim in layout.processes()
]


@pytest.mark.parametrize(("name", "victim"), VICTIMS)
def test_a_dead_process_fails_everybody_who_waits(nursery: Nursery, name: str, victim: str) -> None:
    service = opened(nursery, LAYOUTS[name])
    for n in range(4):
        submit(service, f"{n}", PROMPTS[n], 10_000)
    assert not service.poll(0.2)  # it is in the middle of them
    os.kill(service.pids[victim], signal.SIGKILL)
    started = time.monotonic()
    for n in range(4):
        with pytest.raises(RequestFailed):
            service.answer(f"{n}")
    assert time.monotonic() - started < 5
    with pytest.raises(ProcessLost):
        submit(service, "late", PROMPTS[0])
    service.close()
    assert gone([*service.pids.values()])
    assert not segments_of(service)


def test_a_process_that_hangs_is_not_waited_for(nursery: Nursery) -> None:
    OPENED.append(service := Service(nursery, LAYOUTS["one-rank"], patience_s=1.0))
    os.kill(service.pids["rank-0"], signal.SIGSTOP)
    submit(service, "a", PROMPTS[0])
    with pytest.raises(RequestFailed, match="no answer came in 1 s"):
        service.answer("a")
    os.kill(service.pids["rank-0"], signal.SIGCONT)
    submit(service, "a", PROMPTS[1])
    assert service.answer("a") == one_process(PROMPTS[1])


def said(*each: object) -> Any:
    """A group in which the ranks say this of the request "a"."""
    return SimpleNamespace(rank=0, all_gather=lambda mine: [encode_value({"a": one}) for one in each])


def test_ranks_agree_or_the_request_has_failed() -> None:
    assert agree(said(7, 7), {"a": 7}) == {"a": 7}
    assert agree(said(None, None), {"a": None}) == {"a": None}
    for group, reason in (
        (said(7, 8), "the ranks do not agree: they have the tokens [7, 8]"),
        (said(7, "rank 1: no room"), "rank 1: no room"),
        (said("rank 0: first", "rank 1: second"), "rank 0: first"),
    ):
        outcome = agree(group, {"a": 7})["a"]
        assert isinstance(outcome, Failed)
        assert str(outcome) == reason


def test_rows_of_another_model_are_not_adopted() -> None:
    checkpoint = tiny_qwen2_vl()
    request = read_request(checkpoint.processor, "a", "text", [], policy_of(()))
    with pytest.raises(ValueError, match="4 positions of this model are not rows of the shape"):
        adopt(checkpoint.model, request, torch.zeros(4, 7), 1, 0, 2)


def test_nothing_is_left_of_a_server(nursery: Nursery) -> None:
    service = opened(nursery, LAYOUTS["two-ranks"])
    folder = service._folder
    assert folder.stat().st_mode & 0o777 == 0o700
    submit(service, "a", PROMPTS[0])
    service.close()
    service.close()
    with pytest.raises(ProcessLost):
        service.answer("a")
    assert gone([*service.pids.values()])
    assert not folder.exists()
    assert not segments_of(service)


def test_a_server_that_cannot_start_says_so() -> None:
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        Nursery("json:nothing_of_this_name")
    for bad in ({"tp": 0}, {"tp": 2, "disaggregated": True}):
        with pytest.raises(ValueError, match="at least one rank"):
            Layout(**bad)  # type: ignore[arg-type]


def test_heads_that_cannot_be_shared_end_the_start(nursery: Nursery) -> None:
    with pytest.raises(ProcessLost, match=r"the process rank-. has ended"):
        Service(nursery, Layout(tp=3))


def test_a_command_answers_lines_and_leaves_nothing_when_it_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "reference.serving", "--checkpoint", CHECKPOINT, "--tp", "2", "--media", str(PHOTOS)]
    asked = {"id": "1", "text": PLACEHOLDER, "images": [str(PHOTOS / "rocket.png")], "limit": LIMIT}
    with subprocess.Popen(command, cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps(asked), "no json", json.dumps({"id": "2"}), sep="\n", file=server.stdin, flush=True)
        answers = [json.loads(server.stdout.readline()) for _ in range(3)]
        assert {"id": "1", "tokens": one_process("{rocket}")} in answers
        assert sum("error" in answer for answer in answers) == 2
        family = offspring(server.pid)
        folder = next(tmp_path.glob("mmproof-*/rank-1")).parent
        assert len(family) == 4
        server.kill()
    assert gone(family)
    assert not folder.exists()
    assert not [path for pid in family for path in SHARED_MEMORY.glob(f"mmproof-*-{pid}-*")]


def offspring(pid: int) -> list[int]:
    """All processes that a process has begun, and those that these have."""
    children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return [one for child in children for one in (child, *offspring(child))]
