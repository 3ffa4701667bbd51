"""What may be fetched, said by who runs the server."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def look_up(host: str) -> list[str]:
    """The addresses of a host name, as the operating system gives them."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def connect(address: str, port: int, timeout_s: float) -> socket.socket:
    """A connection to an address, or TimeoutError."""
    return socket.create_connection((address, port), timeout=timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """What may be fetched. The defaults take data URIs, and nothing from the network or the disk.

    schemes: of "data", "file", "http" and "https"; a bare path counts as "file".
    hosts: the only host names, lower-case and exact; None for every host with a public address.
    ports: the only ports.
    folders: absolute paths; files are taken from inside them alone.
    networks: address blocks ("127.0.0.0/8") that are taken although they are not public.
    max_bytes, max_redirects: the largest numbers that are taken. timeout_s: for the whole fetch.
    resolve: a host name -> its addresses as text. dial: an address, a port and the seconds left -> a connected socket.
    """

    schemes: tuple[str, ...] = ("data",)
    hosts: tuple[str, ...] | None = None
    ports: tuple[int, ...] = (80, 443)
    folders: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    max_bytes: int = 64 * 2**20
    max_redirects: int = 3
    timeout_s: float = 10.0
    resolve: Callable[[str], Sequence[str]] = look_up
    dial: Callable[[str, int, float], socket.socket] = connect
