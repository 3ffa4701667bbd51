"""Fetching: a reference from a client becomes bytes, under a policy that refuses what it does not name.

A server that fetches for its clients stands inside a network that they cannot reach. So a URL is an attempt on that
network until it is shown to be none.

1. What a URL may be, and where it may lead, is decided in `reference.media.urls`. The connection goes to the very address
   that was checked there; a second answer of the name server has no say.
2. Every hop is a first hop: the target of a redirect passes all checks, and it is always an HTTP URL.
3. Bounds hold while data arrive: bytes are counted as they come, and one clock runs over all of connecting, sending,
   headers, body and redirects. (A name server's own delay cannot be bounded here.)
4. A body that is cut off, compressed, or comes with another status than 200 is no medium.
5. A path is resolved, links and `..` included, before it is compared with the allowed folders, folder by folder and not
   letter by letter; only regular files are opened. The folders are trusted not to change between the two.

Source: RFC 2397 (data) and 9112 (HTTP/1.1); CVE-2026-24779 and CVE-2026-25960 for two parsers and for redirects.
Disagreements: SGLang 0.5.23 compares host names with a list if there is one, checks no address, and opens any path.
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
from pathlib import Path
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urljoin

from reference.media.errors import MediaError
from reference.media.policy import FetchPolicy
from reference.media.urls import PORTS, check_host, parse

REDIRECTS = (301, 302, 303, 307, 308)
PIECE = 1 << 16
"""How many bytes are read at once."""


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
        target = parse(url, policy)
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
