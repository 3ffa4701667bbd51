"""References for the rules about fetching, each with the network and the limits that belong to it."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.cases import Exact
from conformance.engine import Engine
from conformance.protocol.media import FetchPolicy
from conformance.world.internet import PUBLIC, Internet, page, redirect

BODY = bytes(range(256)) * 3
"""What there is to fetch: every byte, and more of it than one line."""

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PAGES = {
    "/cat": page(BODY),
    "/closing": page(BODY, 200, "Connection: close"),
    "/old": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "/chunked": CHUNKED + b"100\r\n" + BODY[:256] + b"\r\n200\r\n" + BODY[256:] + b"\r\n0\r\n\r\n",
    "/moved": redirect("/cat"),
    "/moved-away": redirect("http://other.example/cat", 308),
    "/moved-again": redirect("moved", 307),
    "/turning": redirect("/turning"),
    "/missing": page(BODY, 404),
    "/broken": page(BODY, 500),
    "/forbidden": page(BODY, 403),
    "/partial": page(BODY, 206),
    "/nothing": page(b""),
    "/cut": page(BODY)[:-1],
    "/cut-chunk": CHUNKED + b"300\r\n" + BODY[:100],
    "/cut-between-chunks": CHUNKED + b"100\r\n" + BODY[:256] + b"\r\n",
    "/no-http": b"\x00\x01\x02 SSH-2.0-nobody\r\n\r\n",
    "/silence": b"",
}


@dataclass(frozen=True, slots=True)
class Fetch:
    """A reference, and what differs from a network in which every name has one public address and serves PAGES.

    limits: fields of the policy.
    """

    reference: str
    names: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    pages: Mapping[str, bytes] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    drip_s: float = 0.0
    mute_s: float = 0.0

    def network(self) -> Internet:
        """A network of its own."""
        return Internet({**PAGES, **self.pages}, self.names, self.drip_s, self.mute_s)

    def by(self, engine: Engine, network: Internet) -> bytes:
        """What the engine makes of it."""
        limits = {"schemes": ("data", "http", "https"), **self.limits}
        return engine.fetch_media(self.reference, FetchPolicy(**limits, resolve=network.resolve, dial=network.dial))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


DATA = {
    "base64": Exact(Fetch(f"data:image/png;base64,{encoded(BODY)}"), BODY),
    "padded-twice": Exact(Fetch("data:image/png;base64,/w=="), b"\xff"),
    "without-a-type": Exact(Fetch(f"data:;base64,{encoded(b'+/?')}"), b"+/?"),
    "with-parameters": Exact(Fetch(f"data:image/svg+xml;charset=utf-8;base64,{encoded(BODY)}"), BODY),
    "upper-case": Exact(Fetch(f"DATA:image/png;BASE64,{encoded(BODY)}"), BODY),
    "percent-encoded": Exact(Fetch("data:,a%20%ff,b"), b"a \xff,b"),
}
BAD_DATA = {
    "no-comma": Fetch("data:image/png;base64"),
    "no-data": Fetch("data:image/png;base64,"),
    "other-letters": Fetch("data:image/png;base64,@@@@!!!!"),
    "impossible-length": Fetch("data:image/png;base64,AAAAA"),
    "text-instead": Fetch("data:image/png;base64,this is no base64 at all"),
    "a-million-letters-too-few": Fetch("data:image/png;base64," + "A" * 1_000_001),
}
SERVED = {
    "plain": Fetch("http://media.example/cat"),
    "upper-case": Fetch("HTTP://Media.EXAMPLE/cat"),
    "server-that-closes": Fetch("http://media.example/closing"),
    "without-a-length": Fetch("http://media.example/old"),
    "chunked": Fetch("http://media.example/chunked"),
    "moved": Fetch("http://media.example/moved"),
    "moved-twice": Fetch("http://media.example/moved-again"),
    "moved-to-another-host": Fetch("http://media.example/moved-away"),
    "allowed-port": Fetch("http://media.example:8080/cat", limits={"ports": (80, 8080)}),
    "named-host": Fetch("http://media.example/cat", limits={"hosts": ("media.example",)}),
    "public-address": Fetch(f"http://{PUBLIC}/cat"),
    "several-addresses": Fetch("http://media.example/cat", {"media.example": [[PUBLIC, PUBLIC]]}),
    "as-long-as-may-be": Fetch("http://media.example/cat", limits={"max_bytes": len(BODY)}),
    "as-many-hops-as-may-be": Fetch("http://media.example/moved-again", limits={"max_redirects": 2}),
}

INSIDE = {
    "loopback": "127.0.0.1",
    "any-loopback": "127.9.9.9",
    "this-host": "0.0.0.0",
    "private-10": "10.1.2.3",
    "private-172": "172.31.0.1",
    "private-192": "192.168.0.1",
    "carrier": "100.64.0.1",
    "link-local": "169.254.169.254",
    "multicast": "224.0.1.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "documentation": "203.0.113.5",
    "loopback-6": "::1",
    "unspecified-6": "::",
    "unique-local-6": "fd00::1",
    "link-local-6": "fe80::1",
    "site-local-6": "fec0::1",
    "multicast-6": "ff0e::1",
    "mapped": "::ffff:10.0.0.1",
    "mapped-loopback": "::ffff:7f00:1",
    "compatible": "::127.0.0.1",
    "nat64": "64:ff9b::10.0.0.1",
    "local-nat64": "64:ff9b:1::a00:1",
    "six-to-four": "2002:7f00:1::",
    "teredo": "2001:0:1::1",
}


def literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address


HIDDEN = {
    f"named-{name}": Fetch("http://media.example/cat", {"media.example": [[address]]}) for name, address in INSIDE.items()
} | {f"written-{name}": Fetch(f"http://{literal(address)}/cat") for name, address in INSIDE.items()}
HIDDEN |= {
    "one-of-two": Fetch("http://media.example/cat", {"media.example": [[PUBLIC, "10.0.0.1"]]}),
    "one-of-two-first": Fetch("http://media.example/cat", {"media.example": [["10.0.0.1", PUBLIC]]}),
    "localhost": Fetch("http://localhost/cat", {"localhost": [["127.0.0.1"]]}),
    "allowed-host-inside": Fetch(
        "http://media.example/cat", {"media.example": [["10.0.0.1"]]}, limits={"hosts": ("media.example",)}
    ),
}

LEADS_TO = {
    "private-address": "http://10.0.0.1/cat",
    "loopback": "http://127.0.0.1:80/cat",
    "mapped-address": "http://[::ffff:10.0.0.1]/cat",
    "name-inside": "http://inside.example/cat",
    "protocol-relative": "//inside.example/cat",
    "file": "file:///etc/hostname",
    "data": "data:,secret",
    "another-scheme": "ftp://media.example/cat",
    "user-name": "http://media.example@inside.example/cat",
    "backslash": "http://inside.example\\@media.example/cat",
    "another-port": "http://media.example:22/cat",
}
LED_ASTRAY = {
    name: Fetch("http://media.example/out", {"inside.example": [["10.0.0.1"]]}, {"/out": redirect(target)})
    for name, target in LEADS_TO.items()
}
LED_ASTRAY |= {
    "host-not-named": Fetch("http://media.example/moved-away", limits={"hosts": ("media.example",)}),
    "nowhere": Fetch("http://media.example/out", pages={"/out": page(b"", 302)}),
    "second-hop": Fetch(
        "http://media.example/one",
        pages={"/one": redirect("http://other.example/two"), "/two": redirect("http://192.168.0.1/cat")},
    ),
    "too-many-hops": Fetch("http://media.example/turning"),
    "one-hop-too-many": Fetch("http://media.example/moved-again", limits={"max_redirects": 1}),
    "no-hop-allowed": Fetch("http://media.example/moved", limits={"max_redirects": 0}),
}

TRICKS = {
    "user-name": "http://media.example@inside.example/cat",
    "user-and-password": "http://user:word@media.example/cat",
    "backslash": "http://inside.example\\@media.example/cat",
    "backslashes": "http:\\\\media.example\\cat",
    "trailing-dot": "http://media.example./cat",
    "double-dot": "http://media..example/cat",
    "no-host": "http:///cat",
    "no-slashes": "http:media.example/cat",
    "line-break": "http://media.example/cat\r\nX-Injected: 1",
    "tab": "http://media.\texample/cat",
    "blank": "http://media.example /cat",
    "zero-byte": "http://media.example\0.inside.example/cat",
    "other-script": "http://medi\u0430.example/cat",
    "percent-in-the-host": "http://media%2eexample/cat",
    "one-number": "http://2130706433/cat",
    "hexadecimal": "http://0x7f000001/cat",
    "octal": "http://0177.0.0.1/cat",
    "short": "http://127.1/cat",
    "scope": "http://[fe80::1%25eth0]/cat",
    "no-bracket": "http://::1/cat",
    "name-in-brackets": "http://[media.example]/cat",
    "half-a-bracket": "http://[::1/cat",
    "port-of-letters": "http://media.example:http/cat",
    "port-too-large": "http://media.example:65616/cat",
    "negative-port": "http://media.example:-80/cat",
    "two-ports": "http://media.example:80:80/cat",
}
AMBIGUOUS = {name: Fetch(url, {"inside.example": [["10.0.0.1"]]}) for name, url in TRICKS.items()}

NOT_NAMED = {
    "another-host": Fetch("http://other.example/cat", limits={"hosts": ("media.example",)}),
    "host-inside-a-name": Fetch("http://media.example.evil.example/cat", limits={"hosts": ("media.example",)}),
    "name-inside-a-host": Fetch("http://notmedia.example/cat", limits={"hosts": ("media.example",)}),
    "host-below": Fetch("http://sub.media.example/cat", limits={"hosts": ("media.example",)}),
    "no-host": Fetch("http://media.example/cat", limits={"hosts": ()}),
    "address": Fetch(f"http://{PUBLIC}/cat", limits={"hosts": ("media.example",)}),
    "another-port": Fetch("http://media.example:8080/cat"),
    "http": Fetch("http://media.example/cat", limits={"schemes": ("data", "https")}),
    "data": Fetch("data:,abc", limits={"schemes": ("http",)}),
    "ftp": Fetch("ftp://media.example/cat"),
    "gopher": Fetch("gopher://media.example/_cat"),
    "nothing": Fetch(""),
    "words": Fetch("a cat"),
    "file": Fetch("file:///etc/hostname"),
    "path": Fetch("/etc/hostname"),
}
REBOUND = {
    "after-the-check": Fetch("http://media.example/cat", {"media.example": [[PUBLIC], ["10.0.0.1"]]}),
    "after-two-looks": Fetch("http://media.example/cat", {"media.example": [[PUBLIC], [PUBLIC], ["127.0.0.1"]]}),
}

FEW = {"max_bytes": len(BODY) - 1}
TOO_LONG = {
    "by-its-length": Fetch("http://media.example/cat", limits=FEW),
    "without-a-length": Fetch("http://media.example/old", limits=FEW),
    "chunked": Fetch("http://media.example/chunked", limits=FEW),
    "after-a-hop": Fetch("http://media.example/moved", limits=FEW),
    "data": Fetch(f"data:;base64,{encoded(BODY)}", limits=FEW),
    "data-without-base64": Fetch("data:," + "a" * len(BODY), limits=FEW),
}
NOT_WHOLE = {
    name: Fetch(f"http://media.example/{name}")
    for name in (
        "missing",
        "broken",
        "forbidden",
        "partial",
        "nothing",
        "cut",
        "cut-chunk",
        "cut-between-chunks",
        "no-http",
        "silence",
    )
}
SLOW = {
    "silent": Fetch("http://media.example/out", pages={"/out": b""}, limits={"timeout_s": 0.1}, mute_s=0.6),
    "silent-after-the-head": Fetch(
        "http://media.example/out", pages={"/out": page(BODY)[:-9]}, limits={"timeout_s": 0.1}, mute_s=0.6
    ),
    "drop-by-drop": Fetch("http://media.example/out", pages={"/out": page(b"x" * 9)}, limits={"timeout_s": 0.1}, drip_s=0.01),
}
