"""What the reference promises beyond the requirements: owners that are told apart, memory that is full, errors that explain."""

import errno
import fcntl
import mmap
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conformance.suite.transport_processes import Pipe, Process, fork, line
from reference.transport import owners
from reference.transport.channel import Channel, NoRoom
from reference.transport.ledger import SeatTaken, StalePacket
from reference.transport.packets import ForgedPacket
from reference.transport.ranges import FreeRanges
from reference.transport.reader import ChannelClosed, Reader
from reference.transport.segment import Segment
from reference.transport.tensors import form_of

BYTES = torch.arange(1 << 17, dtype=torch.int64)


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    """A channel whose segment is in a folder of its own."""
    opened = Channel(capacity_bytes=1 << 22, folder=tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended and was waited for."""
    between = line()
    process = Process("a process", fork(lambda pipe: None, between), Pipe(*between.ours))
    process.close()
    return process.pid


def test_the_dead_are_swept_and_the_living_are_not(tmp_path: Path, ended: int) -> None:
    me = owners.this_process()
    alive = tmp_path / owners.new_name()
    names = {
        "another of this pid, before": f"mmproof-{me.namespace}-{me.pid}-{me.began - 1}-{'0' * 16}",
        "a pid that nobody has": f"mmproof-{me.namespace}-{ended}-{me.began}-{'1' * 16}",
    }
    for name in (alive.name, *names.values(), "psm_of_another_engine", "mmproof-notes.txt"):
        (tmp_path / name).touch()
    assert owners.sweep(tmp_path) == sorted(names.values())
    assert sorted(os.listdir(tmp_path)) == sorted([alive.name, "psm_of_another_engine", "mmproof-notes.txt"])


def test_what_another_user_has_left_is_in_nobodys_way(tmp_path: Path, ended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    me = owners.this_process()
    (tmp_path / f"mmproof-{me.namespace}-{ended}-{me.began}-{'2' * 16}").touch()

    def not_ours(*arguments: Any, **options: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", not_ours)
        channel = Channel(capacity_bytes=1 << 22, folder=tmp_path)
    assert torch.equal(channel.join(0).receive(channel.send([BYTES])[0])[0], BYTES)
    assert channel.counts()["shared_memory"] == 1
    channel.close()


def test_a_fork_can_only_join(channel: Channel) -> None:
    def sends(pipe: Pipe) -> None:
        with pytest.raises(ChannelClosed, match=r"this channel is process \d+'s, and a fork of it can only join"):
            channel.send([BYTES])
        channel.close()
        pipe.say("refused")

    between = line()
    process = Process("a fork", fork(sends, between), Pipe(*between.ours))
    assert process.hear() == "refused"
    process.close()
    assert torch.equal(channel.join(0).receive(channel.send([BYTES])[0])[0], BYTES)


def test_a_process_that_nobody_has_waited_for_is_dead() -> None:
    between = line()
    process = Process("a process", fork(lambda pipe: pipe.say(owners.this_process().word), between), Pipe(*between.ours))
    word = process.hear()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not owners.is_alive(word)
    process.close()


def test_another_namespace_is_judged_by_its_lock(tmp_path: Path) -> None:
    me = owners.this_process()
    held, free = (tmp_path / f"mmproof-{me.namespace + 1}-{me.pid}-{me.began}-{letter * 16}" for letter in "ab")
    free.touch()
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert owners.sweep(tmp_path) == [free.name]


def test_a_full_file_system_is_no_sigbus(tmp_path: Path) -> None:
    """In a mount of one MiB of its own, where this is allowed; what does not fit goes inline."""
    script = """
        import subprocess, sys
        from pathlib import Path
        import torch
        from reference.transport.channel import Channel, NoRoom
        folder = Path(sys.argv[1])
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
        value = torch.arange(300_000)
        for kinds in (("shared_memory", "inline"), ("shared_memory",)):
            channel = Channel(kinds, capacity_bytes=1 << 24, folder=folder)
            reader = channel.join(0)
            assert torch.equal(reader.receive(channel.send([value[:50_000]])[0])[0], value[:50_000])
            try:
                assert torch.equal(reader.receive(channel.send([value])[0])[0], value)
            except NoRoom:
                print("no room", end=" ")
            assert channel.held_bytes() == 0
            print(dict(channel.counts()), len(list(folder.iterdir())), end="; ")
            reader.close()
            channel.close()
        del channel, reader
        (folder / "full").write_bytes(bytes(1 << 20))
        channel = Channel(capacity_bytes=1 << 20, folder=folder)
        print(channel.counts(), [one.name for one in folder.iterdir()])
    """
    command = ["unshare", "-m", sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        assert os.geteuid(), done.stderr  # only root may mount
        return
    assert done.stderr == ""
    assert done.stdout == (
        "{'shared_memory': 1, 'inline': 1} 1; no room {'shared_memory': 1} 1; "
        "{'cuda_ipc': 0, 'shared_memory': 0, 'inline': 0} ['full']\n"
    )


def test_where_no_page_can_be_reserved_everything_goes_inline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    channel = Channel(capacity_bytes=1 << 22, folder=tmp_path)
    assert torch.equal(channel.join(0).receive(channel.send([BYTES])[0])[0], BYTES)
    assert channel.counts()["inline"] == 1
    assert os.listdir(tmp_path) == []
    with pytest.raises(NoRoom, match=r"value 0 has 1048576 bytes, and there is no room for them: 0 are held"):
        Channel(["shared_memory"], folder=tmp_path).send([BYTES])


def test_a_process_without_descriptors_copies(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = channel.join(0)

    def none_left(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Segment, "map", none_left)
    assert torch.equal(reader.receive(channel.send([BYTES])[0])[0], BYTES)
    assert channel.held_bytes() == 0


def test_a_reader_in_a_process_of_its_own_needs_the_invitation_alone(channel: Channel) -> None:
    script = """
        import sys
        from reference.transport.reader import Reader
        reader = Reader(bytes.fromhex(sys.argv[1]), 0)
        [value] = reader.receive(bytes.fromhex(sys.argv[2]))
        print(value.dtype, list(value.shape), int(value.sum()))
    """
    arguments = [channel.invitation().hex(), channel.send([BYTES])[0].hex()]
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=True)
    assert said.stdout == f"torch.int64 [131072] {int(BYTES.sum())}\n"
    assert said.stderr == ""
    assert channel.held_bytes() == 0


def test_a_part_of_a_tensor_holds_its_place(channel: Channel) -> None:
    reader = channel.join(0)
    part = reader.receive(channel.send([BYTES])[0])[0][5:7]
    assert channel.held_bytes() == BYTES.nbytes
    assert part.tolist() == [5, 6]
    del part
    assert channel.held_bytes() == 0


def test_an_invitation_is_no_part_of_a_packet_or_a_segment(channel: Channel, tmp_path: Path) -> None:
    packet = channel.send([BYTES])[0]
    key = bytes.fromhex(channel.invitation().decode().split('"')[3])
    [segment] = tmp_path.iterdir()
    assert key not in packet
    assert key not in segment.read_bytes()
    assert segment.stat().st_mode & 0o777 == 0o600


def received_twice(channel: Channel, reader: Reader) -> None:
    packet = channel.send([BYTES])[0]
    reader.receive(packet)
    reader.receive(packet)


def recalled(channel: Channel, reader: Reader) -> None:
    packet = channel.send([BYTES])[0]
    channel.discard(packet)
    reader.receive(packet)


def closed(channel: Channel, reader: Reader) -> None:
    channel.close()
    channel.send([BYTES])


def reader_closed(channel: Channel, reader: Reader) -> None:
    reader.close()
    reader.receive(channel.send([BYTES])[0])


@pytest.mark.parametrize(
    ("do", "error", "message"),
    [
        (received_twice, StalePacket, r"reader 0 has received generation 1 of slot 0 before"),
        (recalled, StalePacket, r"generation 1 of slot 0 is gone; there is nothing now"),
        (closed, ChannelClosed, r"this channel is closed"),
        (reader_closed, ChannelClosed, r"this reader is closed"),
        (lambda channel, reader: channel.send([BYTES], 0), ValueError, r"at least one packet is sent, not 0"),
        (lambda channel, reader: channel.send([BYTES, "cat"]), TypeError, r"value 1: tensors, arrays and None travel, not str"),
        (lambda channel, reader: channel.send([BYTES.to_sparse()]), TypeError, r"value 0: only dense tensors"),
        (lambda channel, reader: channel.send([np.array([{}])]), TypeError, r"value 0: arrays of object do not travel"),
        (lambda channel, reader: channel.send([np.ma.masked_less(np.arange(3), 1)]), TypeError, r"its mask would be lost"),
        (lambda channel, reader: channel.send([b"a picture"]), ForgedPacket, r"9 bytes that do not begin as a packet does"),
        (
            lambda channel, reader: channel.send([channel.send([BYTES, None])[0]]),
            ValueError,
            r"value 0 is a packet of 2 values, and only one of one value can be a part",
        ),
        (lambda channel, reader: channel.join(1), ValueError, r"the readers of this channel are 0 to 0, and not 1"),
        (lambda channel, reader: channel.join(0), SeatTaken, r"is reader 0 of this channel already, and alive"),
        (lambda channel, reader: reader.receive(b""), ForgedPacket, r"0 bytes that do not begin"),
        (lambda channel, reader: reader.receive("packet"), TypeError, r"a packet is bytes, not str"),
        (lambda channel, reader: reader.receive(channel.send([None])[0] + b"."), ForgedPacket, r"made up, cut off or damaged"),
        (lambda channel, reader: reader.receive(Channel(["inline"]).send([None])[0]), ForgedPacket, r"a packet of the channel"),
    ],
)
def test_what_is_refused_is_explained(
    channel: Channel, do: Callable[[Channel, Reader], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        do(channel, channel.join(0))


def test_who_comes_after_the_end_is_told(channel: Channel) -> None:
    invitation = channel.invitation()
    channel.close()
    with pytest.raises(ChannelClosed, match=r"the sender of the channel \w+ is gone"):
        Reader(invitation, 0)


def test_slots_run_out_before_the_room(tmp_path: Path) -> None:
    channel = Channel(capacity_bytes=1 << 22, folder=tmp_path, slots=2)
    packets = [channel.send([BYTES[:1024]])[0] for _ in range(3)]
    assert channel.counts() == {"cuda_ipc": 0, "shared_memory": 2, "inline": 1}
    reader = channel.join(0)
    assert all(torch.equal(reader.receive(packet)[0], BYTES[:1024]) for packet in packets)
    channel.close()


def test_free_ranges_grow_together() -> None:
    ranges = FreeRanges(10 * mmap.PAGESIZE, unit_bytes=mmap.PAGESIZE)
    taken = [ranges.take(mmap.PAGESIZE + 1) for _ in range(5)]
    assert taken == [mmap.PAGESIZE * n for n in (0, 2, 4, 6, 8)]
    assert ranges.take(1) is None
    for first in (mmap.PAGESIZE * n for n in (2, 6, 4)):
        ranges.give_back(first, mmap.PAGESIZE + 1)
    assert ranges.take(6 * mmap.PAGESIZE) == 2 * mmap.PAGESIZE


def test_every_form_says_how_many_bytes_it_has() -> None:
    for value in (torch.zeros(3, 5, dtype=torch.bfloat16), np.zeros((2, 3), ">f8"), torch.tensor(1), torch.empty(0, 3)):
        assert form_of(value).size_bytes == value.nbytes
