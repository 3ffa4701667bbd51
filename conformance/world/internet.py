"""A network that is not there: names, addresses and servers for the rules about fetching.

Nothing leaves the process. Whatever address an engine connects to, it is this network that answers, with a secret
where the address is none of the open internet: so an engine that goes where it must not brings the secret home, and a
rule can see it. Each connection is one end of a pair of sockets, with the script of the server at the other.
"""

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PUBLIC = "93.184.215.14"
"""An address of the open internet; nobody is ever asked there."""

SECRET = b"what only the inside may know"


def page(body: bytes, status: int = 200, *headers: str) -> bytes:
    """A whole answer of a server, with the length of its body."""
    lines = (f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def redirect(target: str, status: int = 302) -> bytes:
    """An answer that points elsewhere."""
    return page(b"", status, f"Location: {target}")


@dataclass(slots=True)
class Internet:
    """What the network holds, and what was asked of it.

    pages: for each path the bytes that a server on a public address answers with, whatever its name.
    names: for each host name its addresses, one list for each time it is asked, the last one from then on; every other
        name has the address PUBLIC.
    drip_s: a pause before each byte of an answer. mute_s: how long a connection is held open after it.
    dialled: the addresses and ports that were connected to, in order. asked: the names that were resolved.
    """

    pages: Mapping[str, bytes] = field(default_factory=dict)
    names: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    drip_s: float = 0.0
    mute_s: float = 0.0
    dialled: list[tuple[str, int]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def resolve(self, host: str) -> Sequence[str]:
        """The addresses of a name."""
        answers = self.names.get(host, [[PUBLIC]])
        self.asked.append(host)
        return list(answers[min(self.asked.count(host), len(answers)) - 1])

    def dial(self, address: str, port: int, timeout_s: float) -> socket.socket:
        """A connection to a server, of this process."""
        self.dialled.append((address, port))
        near, far = socket.socketpair()
        threading.Thread(target=self._serve, args=(far, address), daemon=True).start()
        return near

    def _serve(self, link: socket.socket, address: str) -> None:
        with link:
            try:
                link.settimeout(5)
                asked = b""
                while b"\r\n\r\n" not in asked and (piece := link.recv(4096)):
                    asked += piece
                path = asked.split(b" ")[1].decode("latin-1") if b" " in asked else "/"
                self._send(link, self._answer(path, address))
            except OSError:
                return  # the engine hung up, as it may

    def _answer(self, path: str, address: str) -> bytes:
        if address != PUBLIC:
            return page(SECRET)
        return self.pages.get(path, page(b"not here", 404))

    def _send(self, link: socket.socket, answer: bytes) -> None:
        if self.drip_s:
            for place in range(len(answer)):
                time.sleep(self.drip_s)
                link.sendall(answer[place : place + 1])
        else:
            link.sendall(answer)
        if self.mute_s:
            time.sleep(self.mute_s)
