"""SGLang's downloads.

A reference to a picture goes through `_load_single_item`, and what would be decoded is the answer. Of a policy SGLang has
these limits: hosts, bytes, redirects and seconds. Schemes, ports, folders and networks it does not know.
"""

import ipaddress
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import PIL.Image

from conformance.adapters.sglang import cpu, processors
from conformance.protocol.media import FetchPolicy


def fetch(reference: str, policy: FetchPolicy) -> bytes:
    """`_load_single_item`, for a server with the limits of the policy, whose connections go through the policy's doors.

    Its timeouts are whole seconds from the environment; here `download_remote_media` is given the policy's. Files have no
    limit, and some have no end: it may take a gigabyte, and then runs out of memory.
    """
    common = cpu.module("sglang.srt.utils.common")
    download = common.download_remote_media

    def connect(address: tuple[str, int], timeout: Any = None, *_: Any, **__: Any) -> socket.socket:
        """In the place of urllib3's `create_connection`: the first address that takes the connection."""
        host, port = address
        for found in _addresses(host.strip("[]"), policy):
            return policy.dial(found, port, timeout)
        raise OSError("getaddrinfo returns an empty list")

    with (
        _memory(1 << 30),
        patch.object(import_module("urllib3.util.connection"), "create_connection", connect),
        patch.object(common, "Image", _Undecoded),
        patch.object(common, "_mm_http_session", threading.local()),
        patch.object(common, "_allowed_media_domains", common._allowed_media_domains),
        patch.object(common, "_media_url_max_file_size_bytes", policy.max_bytes),
        patch.object(common, "_MAX_MEDIA_URL_REDIRECTS", policy.max_redirects),
        patch.object(common, "download_remote_media", lambda url, timeout: download(url, policy.timeout_s)),
    ):
        common._allowed_media_domains = frozenset(map(common._normalize_media_domain, policy.hosts or ()))
        load = processors.base()._load_single_item
        read: _Undecoded = load(
            reference, cpu.module("sglang.srt.managers.schedule_batch").Modality.IMAGE, discard_alpha_channel=False
        )
    return read.data


class _Undecoded:
    """In the place of PIL's `Image`: it opens a file, and does not decode it, unless there is nothing in it."""

    Image = PIL.Image.Image

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def open(cls, file: BytesIO) -> Any:
        return cls(file.getvalue()) if file.getvalue() else PIL.Image.open(file)

    def load(self) -> None:
        """There is nothing to decode."""


@contextmanager
def _memory(further_bytes: int) -> Iterator[None]:
    """This process may not take more memory than it has and this much."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + further_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _addresses(host: str, policy: FetchPolicy) -> list[str]:
    """What the system's resolver answers: a written address is one already, in any form that `inet_aton` takes."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        return list(policy.resolve(host))
