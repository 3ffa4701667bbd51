"""A connected socket, lent to another process: whatever passes is handed on over the loopback interface."""

import contextlib
import socket
import threading

LOOPBACK = "127.0.0.1"


def lend(link: socket.socket) -> int:
    """Hand on what passes through a socket to whoever connects first to the port that is returned."""
    door = socket.create_server((LOOPBACK, 0), backlog=1)
    threading.Thread(target=_hand_on, args=(door, link), daemon=True, name="a socket that was lent").start()
    port: int = door.getsockname()[1]
    return port


def borrow(port: int) -> socket.socket:
    """The socket that was lent at this port."""
    return socket.create_connection((LOOPBACK, port))


def _hand_on(door: socket.socket, link: socket.socket) -> None:
    with door, link:
        other, _ = door.accept()
        with other:
            back = threading.Thread(target=_copy, args=(link, other), daemon=True)
            back.start()
            _copy(other, link)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, and let the target know that it has."""
    with contextlib.suppress(OSError):  # one of them hung up
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
