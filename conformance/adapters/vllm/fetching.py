"""vLLM's fetching: `MediaConnector.load_from_url`, as `LLM.chat` calls it; the server's own way has the same checks.

What may be fetched is told by the two settings that there are, a folder and host names, and by vLLM's environment variables.
There is none for schemes, ports, networks or the number of redirects. A path is written as the URL of a file, for vLLM takes
nothing else. Before a fetch is tried again nobody waits.
"""

import os
import socket
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from conformance.adapters.vllm import cpu
from conformance.protocol.media import FetchPolicy

MEBIBYTE = 1 << 20


def fetch_media(reference: str, policy: FetchPolicy) -> bytes:
    """The bytes that `MediaConnector` gives to a loader, here one that keeps them; where there are none, that of pictures."""
    answer: Any = cpu.module("vllm.entrypoints.serve.exception_handling.utils").sanitize_message
    connections = cpu.module("vllm.connections")
    pictures = cpu.module("vllm.multimodal.media.image").ImageMediaIO

    class Bytes(pictures):  # type: ignore[misc, valid-type]
        def load_bytes(self, data: bytes) -> Any:
            return data or super().load_bytes(data)

    connector = cpu.module("vllm.multimodal.media.connector").MediaConnector(
        connection=connections.HTTPConnection(reuse_client=False),
        allowed_local_media_path=next(iter(policy.folders), ""),
        allowed_media_domains=None if policy.hosts is None else list(policy.hosts),
    )
    url = PurePosixPath(reference).as_uri() if reference.startswith("/") else reference
    settings: dict[str, Any] = {
        "VLLM_MAX_MEDIA_DOWNLOAD_SIZE_MB": policy.max_bytes / MEBIBYTE,
        "VLLM_MEDIA_URL_ALLOW_REDIRECTS": policy.max_redirects > 0,
    }

    def connect(address: tuple[str, int], timeout: float, *_: Any, **__: Any) -> socket.socket:
        """A connection by the policy's doors; a host that the system reads as a number is not looked up."""
        host, port = address[0].strip("[]"), address[1]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            addresses = [str(one[4][0]) for one in found]
        except socket.gaierror:
            addresses = list(policy.resolve(host))
        connection = policy.dial(addresses[0], port, timeout)
        connection.settimeout(timeout)
        return connection

    with (
        patch.multiple(cpu.module("vllm.envs"), create=True, **settings),
        patch.object(cpu.module("urllib3.util.connection"), "create_connection", connect),
        patch.object(connections, "time", SimpleNamespace(sleep=lambda seconds: None)),
        patch.dict(os.environ, {"NO_PROXY": "*", "no_proxy": "*"}),
    ):
        try:
            content: bytes = connector.load_from_url(url, Bytes(), fetch_timeout=policy.timeout_s)
        except ValueError as error:
            raise ValueError(answer(str(error))) from None
    return content
