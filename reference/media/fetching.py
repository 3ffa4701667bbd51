"""Fetching: a reference from a client becomes bytes, under a policy that refuses what it does not name.

A server that fetches for its clients stands inside a network that they cannot reach. So a URL is an attempt on that
network until it is shown to be none.

1. One parser. A URL that two parsers may read in two ways (a backslash, user names, control characters, an address
   written as 127.1) is refused before it is read.
2. One resolution. A name is looked up once, every address that it has must be public, and the connection goes to the
   very address that was checked; a second answer of the name server has no say.
3. Every hop is a first hop: the target of a redirect passes all checks, and it is always an HTTP URL.
4. Bounds hold while data arrive: bytes are counted as they come, and one clock runs over all of connecting, sending,
   headers, body and redirects. (A name server's own delay cannot be bounded here.)
5. A body that is cut off, compressed, or comes with another status than 200 is no medium.
6. A path is resolved, links and `..` included, before it is compared with the allowed folders, folder by folder and not
   letter by letter; only regular files are opened. The folders are trusted not to change between the two.

Source: RFC 2397 (data), 3986, 9112; the special-purpose address registries of IANA, which `ipaddress` knows;
CVE-2026-24779 and CVE-2026-25960 for two parsers and for redirects. Disagreements: SGLang 0.5.23 takes any host and, by
default, any file; vLLM compares host names exactly and checks no address.
"""

import base64
import binascii
import http.client
import io
import os
import re
import socket
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urljoin, urlsplit

from reference.media.errors import MediaError

PORTS = {"http": 80, "https": 443}
REDIRECTS = (301, 302, 303, 307, 308)
PIECE = 1 << 16

PLAIN = re.compile(r"[!-\[\]-~]+")
"""Printable ASCII without blank and backslash: what a URL is written with."""

HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")
LAST_LABEL_IS_A_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")

DISGUISES = tuple(
    ip_network(block)
    for block in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10")
)
"""IPv6 blocks that carry an IPv4 address to somewhere else: compatible, mapped, NAT64, Teredo and 6to4; and site-local."""


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


def fetch_media(reference: str, policy: FetchPolicy) -> bytes:
    """The bytes that a URL or an absolute path stands for, at least one.

    Raises MediaError for what the policy does not allow, and for what cannot be had whole.
    """
    scheme = _scheme(reference)
    if scheme not in policy.schemes:
        raise MediaError(f"references of this kind are not taken; these are: {', '.join(policy.schemes) or 'none'}")
    read = {"data": _read_data, "file": _read_file, "http": _read_http, "https": _read_http}[scheme]
    data = read(reference, policy)
    if not data:
        raise MediaError("there is nothing in this medium")
    return data


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the open internet, and does not stand for an IPv4 address elsewhere."""
    disguised = any(address in block for block in DISGUISES)
    return address.is_global and not (disguised or address.is_multicast or address.is_reserved)


def check_host(url: SplitResult, policy: FetchPolicy) -> tuple[str, int, str]:
    """The host, port and one checked address that a URL leads to. Raises MediaError unless the policy allows it."""
    host, port = _host_and_port(url)
    if policy.hosts is not None and host not in policy.hosts:
        raise MediaError("this host is not taken")
    if port not in policy.ports:
        raise MediaError(f"port {port} is not taken; these are: {', '.join(map(str, policy.ports))}")
    addresses = [ip_address(found) for found in _addresses(host, policy)]
    exempt = [ip_network(block) for block in policy.networks]
    if not all(is_public(address) or any(address in block for block in exempt) for address in addresses):
        raise MediaError("this host is not on the open internet")
    return host, port, str(addresses[0])


def _scheme(reference: str) -> str:
    """What a reference says it is; a bare path is a file."""
    if reference.startswith("/"):
        return "file"
    scheme, colon, _ = reference[:16].partition(":")
    return scheme.lower() if colon and scheme.lower() in ("data", "file", *PORTS) else "unknown"


def _read_data(reference: str, policy: FetchPolicy) -> bytes:
    """The payload of a data URI. Base64 is strict: its own alphabet, padded, without white space."""
    head, comma, payload = reference[5:].partition(",")
    if not comma:
        raise MediaError("a data URI has a comma before its data")
    is_base64 = head.lower().endswith(";base64")
    if len(payload) > (policy.max_bytes + 2) // 3 * 4 * (1 if is_base64 else 3):
        raise MediaError(f"the data URI has more than {policy.max_bytes} bytes")
    try:
        octets = payload.encode("ascii")
        data = base64.b64decode(octets, validate=True) if is_base64 else unquote_to_bytes(octets)
    except (UnicodeEncodeError, binascii.Error):
        raise MediaError("the data URI is not written in ASCII, or not in base64 as it says") from None
    _check_length(len(data), policy)
    return data


def _read_file(reference: str, policy: FetchPolicy) -> bytes:
    path = unquote(_file_path(reference)) if reference[:5].lower() == "file:" else reference
    try:
        real = Path(path).resolve(strict=True)
        folders = [Path(folder).resolve(strict=True) for folder in policy.folders]
        if not any(real.is_relative_to(folder) for folder in folders):
            raise MediaError("files outside the allowed folders are not taken")
        handle = os.open(real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise MediaError("only regular files are taken")
            _check_length(about.st_size, policy)
            return file.read()
    except MediaError:
        raise
    except (OSError, ValueError, RuntimeError):  # not there, a zero byte, a ring of links
        raise MediaError("files outside the allowed folders are not taken") from None


def _file_path(reference: str) -> str:
    """The path of a file URL, which has no host."""
    match = re.fullmatch(r"(?i:file:)(?://(?:localhost)?)?(/(?!/)[^?#]*)", reference)
    if match is None:
        raise MediaError("a file URL is written file:///folder/file")
    return match[1]


def _read_http(reference: str, policy: FetchPolicy) -> bytes:
    deadline, url = time.monotonic() + policy.timeout_s, reference
    for _ in range(policy.max_redirects + 1):
        target = _parsed(url, policy)
        host, port, address = check_host(target, policy)
        try:
            with _Exchange(target, host, port, address, policy, deadline) as answer:
                if answer.status not in REDIRECTS:
                    return _body(answer, policy)
                url = urljoin(url, answer.getheader("Location") or "")
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, MediaError):
                raise
            raise MediaError("the server could not be reached in time, or does not speak HTTP") from None
    raise MediaError(f"the server redirects more than {policy.max_redirects} times")


def _parsed(url: str, policy: FetchPolicy) -> SplitResult:
    """The parts of an HTTP URL that can be read in one way only."""
    if not PLAIN.fullmatch(url):
        raise MediaError("a URL is written in ASCII, without white space, control characters and backslashes")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise MediaError("this URL cannot be read") from None
    if parts.scheme not in PORTS or parts.scheme not in policy.schemes or not url[len(parts.scheme) :].startswith("://"):
        raise MediaError("the server may only be asked, and may only redirect, by the allowed kinds of URL")
    return parts


def _host_and_port(url: SplitResult) -> tuple[str, int]:
    """The host in lower case and the port, of a URL with nothing else before its path."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^\[\]:@%]+)(?::([1-9][0-9]{0,4}))?", url.netloc.lower())
    if match is None:
        raise MediaError("before the path of a URL stands a host, and perhaps a port, and nothing else")
    host, port = match[1].strip("[]"), int(match[2] or PORTS[url.scheme])
    if not match[1].startswith("[") and not HOST.fullmatch(host):
        raise MediaError("this is no host name")
    if LAST_LABEL_IS_A_NUMBER.fullmatch(host) and not _is_address(host):
        raise MediaError("an IPv4 address is written as four decimal numbers")
    return host, port


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _addresses(host: str, policy: FetchPolicy) -> Sequence[str]:
    """The host itself if it is an address, or else what its name resolves to; at least one."""
    if _is_address(host):
        return [host]
    try:
        found = policy.resolve(host)
    except (OSError, UnicodeError):
        found = []
    if not found or not all(_is_address(address) and "%" not in address for address in found):
        raise MediaError("this host has no address on the open internet")
    return found


class _Exchange:
    """One request to a checked address, and its answer while the block lasts."""

    def __init__(self, url: SplitResult, host: str, port: int, address: str, policy: FetchPolicy, deadline: float) -> None:
        secure = url.scheme == "https"
        self._connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(host, port)
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._host, self._secure, self._deadline = host, secure, deadline
        self._link = policy.dial(address, port, _left(deadline))

    def __enter__(self) -> http.client.HTTPResponse:
        try:
            self._link.settimeout(_left(self._deadline))
            if self._secure:
                self._link = ssl.create_default_context().wrap_socket(self._link, server_hostname=self._host)
            self._connection.sock = _Timed(self._link, self._deadline)
            self._connection.request("GET", self._target, headers={"Accept": "*/*", "Connection": "close"})
            return self._connection.getresponse()
        except BaseException:
            self._link.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._link.close()


class _Timed:
    """A socket, as far as an HTTP connection uses it, that waits no longer than until the deadline, in all."""

    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link, self._deadline = link, deadline

    def sendall(self, data: bytes) -> None:
        self._link.settimeout(_left(self._deadline))
        self._link.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._link, self._deadline))

    def close(self) -> None:
        """The connection closes before the body is read; the exchange closes the socket."""


class _TimedReader(io.RawIOBase):
    def __init__(self, link: socket.socket, deadline: float) -> None:
        self._link, self._deadline = link, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        self._link.settimeout(_left(self._deadline))
        return self._link.recv_into(buffer)


def _left(deadline: float) -> float:
    """The seconds that are left. Raises TimeoutError when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _body(answer: http.client.HTTPResponse, policy: FetchPolicy) -> bytes:
    """The whole body of an answer of status 200."""
    if answer.status != 200:
        raise MediaError(f"the server answered with the status {answer.status}")
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise MediaError("the server sent compressed data, which nobody asked for")
    promised = answer.length
    _check_length(promised or 0, policy)
    data = bytearray()
    while piece := answer.read1(PIECE):
        data += piece
        _check_length(len(data), policy)
    if promised is not None and len(data) < promised:
        raise MediaError(f"the medium was cut off after {len(data)} of {promised} bytes")
    return bytes(data)


def _check_length(length: int, policy: FetchPolicy) -> None:
    if length > policy.max_bytes:
        raise MediaError(f"the medium has more than {policy.max_bytes} bytes")
