"""What vLLM 0.33.0 gets wrong about media that a URL names.

`python -m conformance.adapters.vllm.check` runs these, too.
"""

import io
import socket
import threading
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.parts import named

CHECKS = Checks()
fails = CHECKS.fails


def loader() -> Any:
    """A loader of pictures that gives the bytes that it gets."""
    base = named("multimodal.media.image:ImageMediaIO")
    return type("Bytes", (base,), {"load_bytes": lambda self, data: data})()


def connector(connection: Any = None, **settings: Any) -> Any:
    return named("multimodal.media.connector:MediaConnector")(connection=connection, **settings)


def served(url: str, *answers: tuple[int, str, bytes], **settings: Any) -> tuple[list[str], bytes]:
    """What is asked for, and what is loaded, when servers answer like this in turn: a status, where to go, and a body."""
    library: Any = import_module("requests")
    asked: list[str] = []

    class Servers(library.adapters.BaseAdapter):  # type: ignore[misc]
        def send(self, request: Any, **options: Any) -> Any:
            response = library.Response()
            response.status_code, location, body = answers[len(asked)]
            response.headers.update({"Location": location} if location else {})
            response.raw, response.url, response.request = io.BytesIO(body), request.url, request
            asked.append(request.url)
            return response

        def close(self) -> None:
            pass

    connection = named("connections:HTTPConnection")()
    connection.get_sync_client().mount("http://", Servers())
    return asked, connector(connection, **settings).load_from_url(url, loader())


@fails("MEDIA-16", "MEDIA-31")
def data_in_base64_alone() -> bool:
    """A data URI that is percent-encoded, or says BASE64, is refused, with an error that is no ValueError."""
    urls = ("data:,a", "data:;BASE64,YQ==")
    return {error(partial(connector().load_from_url, url, loader())) for url in urls} == {"NotImplementedError"}


@fails("MEDIA-19")
def any_address() -> bool:
    """Whatever address stands in a URL is connected to, and no name is looked up before a connection is made."""
    inside = ("http://127.0.0.1/cat", "http://169.254.169.254/cat", "http://[::ffff:10.0.0.1]/cat")
    return [served(url, (200, "", b"secret")) for url in inside] == [([url], b"secret") for url in inside]


@fails("MEDIA-20")
def redirects_unchecked() -> bool:
    """Where a URL redirects is not looked at: to a host that is not allowed, 30 times, and nowhere."""
    away, inside = (302, "http://10.0.0.1/cat", b""), (200, "", b"secret")
    urls, content = served("http://media.example/cat", away, inside, allowed_media_domains=["media.example"])
    many = served("http://media.example/", *[(302, "http://media.example/", b"")] * 30, inside)
    return (urls[1], content) == ("http://10.0.0.1/cat", b"secret") and len(many[0]) == 31


@fails("MEDIA-21")
def odd_urls() -> bool:
    """URLs with user names, backslashes, line breaks and numbers for hosts are fetched."""
    odd = ("http://media.example@inside.example/", "http://inside.example\\@media.example/", "http://2130706433/")
    return [served(url, (200, "", b"a"))[1] for url in odd] == [b"a"] * 3


@fails("MEDIA-22")
def ports_and_no_hosts() -> bool:
    """An empty list of hosts is none, and any port of a host is allowed."""
    asked = served("http://media.example:22/cat", (200, "", b"a"), allowed_media_domains=[])
    return asked == (["http://media.example:22/cat"], b"a")


@fails("MEDIA-24", "MEDIA-29")
def files_and_data_of_any_length() -> bool:
    """The limit of a download is none of a data URI, and none of a file."""
    envs = cpu.module("vllm.envs")
    with TemporaryDirectory() as folder, patch.object(envs, "VLLM_MAX_MEDIA_DOWNLOAD_SIZE_MB", 2**-20, create=True):
        (Path(folder) / "cat").write_bytes(b"cat")
        load = connector(allowed_local_media_path=folder).load_from_url
        sizes = [len(load(url, loader())) for url in (f"file://{folder}/cat", "data:;base64,Y2F0")]
        return sizes == [3, 3] and error(lambda: served("http://media.example/", (200, "", b"cat"))) != ""


@fails("MEDIA-25")
def parts_of_media() -> bool:
    """A part of a medium, status 206, is taken for the whole."""
    return served("http://media.example/cat", (206, "", b"c"))[1] == b"c"


@fails("MEDIA-26")
def drop_by_drop() -> bool:
    """The time limit is one of each read: a server that sends a byte now and then is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            with door.accept()[0] as link:
                link.recv(4096)
                for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789":
                    time.sleep(0.01)
                    link.sendall(bytes([byte]))

        threading.Thread(target=serve, daemon=True).start()
        connection = named("connections:HTTPConnection")()
        connection.get_sync_client().trust_env = False
        started = time.monotonic()
        content = connection.get_bytes(f"http://127.0.0.1:{door.getsockname()[1]}/", timeout=0.1)
    return bool(content == b"123456789" and time.monotonic() - started > 0.3)


@fails("MEDIA-30", "MEDIA-31")
def errors_of_files_and_servers() -> bool:
    """What is wrong with a file or a server is told as it happens: a RuntimeError, an IsADirectoryError, a HTTPError."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "deep").mkdir()
        load = connector(allowed_local_media_path=folder).load_from_url
        errors = [error(lambda: connector().load_from_url("file:///cat", loader()))]
        errors += [error(lambda: load(f"file://{folder}/deep", loader()))]
    with patch.object(cpu.module("vllm.envs"), "VLLM_MEDIA_FETCH_MAX_RETRIES", 1, create=True):
        errors += [error(lambda: served("http://media.example/cat", (500, "", b"")))]
    return errors == ["RuntimeError", "IsADirectoryError", "HTTPError"]
