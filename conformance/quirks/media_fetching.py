"""Ways in which engines have fetched what they must not, or lost what they may."""

import base64
import http.client
import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from conformance.quirk import quirk
from reference.media import MediaError, urls
from reference.media import fetching as right
from reference.media.policy import FetchPolicy

EVERYWHERE = ("0.0.0.0/0", "::/0")
HUGE = 1 << 40


@quirk("plus-is-a-blank", replaces="fetch_media", bugs=(), caught_by=("MEDIA-16", "MEDIA-24"))
def plus_is_a_blank(reference: str, policy: FetchPolicy) -> bytes:
    """A data URI is unquoted like a form, where a plus sign means a blank, and base64 loses one of its letters."""
    is_base64 = ";base64," in reference
    return right.fetch_media(reference.replace("+", "") if is_base64 else reference, policy)


@quirk("lenient-base64", replaces="fetch_media", bugs=("M01", "M02"), caught_by=("MEDIA-17",))
def lenient_base64(reference: str, policy: FetchPolicy) -> bytes:
    """Letters that base64 does not have are left out: any text becomes some bytes, and a decoder has to notice."""
    head, comma, payload = reference.partition(",")
    if not comma or not head.lower().endswith(";base64") or "data" not in policy.schemes:
        return right.fetch_media(reference, policy)
    letters = re.sub(r"[^A-Za-z0-9+/]", "", payload)
    data = base64.b64decode(letters[: len(letters) // 4 * 4 + len(letters) % 4 // 2 * 4] + "==")
    right._check_length(len(data), policy)
    return data or b"?"


@quirk("relative-redirects-lost", replaces="fetch_media", bugs=(), caught_by=("MEDIA-18", "MEDIA-26"))
def relative_lost(reference: str, policy: FetchPolicy) -> bytes:
    """The target of a redirect is taken for a whole URL, which the commonest ones are not."""
    return _over_http(reference, policy, join=False)


@quirk("inside-addresses-taken", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-19", "MEDIA-20"))
def inside_taken(reference: str, policy: FetchPolicy) -> bytes:
    """Names and schemes are checked, addresses are not: the metadata service of the cloud is one of them."""
    return right.fetch_media(reference, replace(policy, networks=EVERYWHERE))


@quirk("first-address-checked", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-19",))
def first_address_checked(reference: str, policy: FetchPolicy) -> bytes:
    """Of several addresses of a name the first is checked, and the connection may go to any."""
    return right.fetch_media(reference, replace(policy, resolve=lambda host: policy.resolve(host)[:1]))


@quirk("disguised-addresses-taken", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-19", "MEDIA-20"))
def disguised_taken(reference: str, policy: FetchPolicy) -> bytes:
    """Private blocks are known in IPv4 only, so that an IPv6 address with a private one inside is public."""
    return right.fetch_media(reference, replace(policy, networks=tuple(map(str, urls.DISGUISES))))


@quirk("first-url-checked", replaces="fetch_media", bugs=("S03", "ssrf-cves"), caught_by=("MEDIA-20", "MEDIA-23"))
def first_url_checked(reference: str, policy: FetchPolicy) -> bytes:
    """The first URL passes every check, and where it redirects to none."""
    if right._scheme(reference) in urls.PORTS and right._scheme(reference) in policy.schemes:
        urls.check_host(urls.parse(reference, policy), replace(policy, resolve=_same(policy)))
        loose = replace(policy, networks=EVERYWHERE, hosts=None, ports=(*policy.ports, 22, 443))
        return right.fetch_media(reference, replace(loose, resolve=_same(policy)))
    return right.fetch_media(reference, policy)


@quirk("user-names-and-backslashes-mended", replaces="fetch_media", bugs=("S03", "ssrf-cves"), caught_by=("MEDIA-21",))
def mended(reference: str, policy: FetchPolicy) -> bytes:
    """An odd URL is mended as a browser does it, after another parser has taken another host out of it."""
    url = re.sub(r"[\t\r\n]", "", reference).replace("\\", "/")
    return right.fetch_media(re.sub(r"^(https?://)[^/@]*@", r"\1", url), policy)


@quirk("numbers-are-hosts", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-21",))
def numbers_are_hosts(reference: str, policy: FetchPolicy) -> bytes:
    """A host such as 0x7f000001 is no address to the check, and 127.0.0.1 to the system that connects."""
    host = urlsplit(reference).hostname if reference.startswith("http://127.1") else None
    if host and "http" in policy.schemes:
        with policy.dial("127.0.0.1", 80, policy.timeout_s) as link:
            link.sendall(b"GET / HTTP/1.1\r\n\r\n")
            return link.recv(1 << 16)
    return right.fetch_media(reference, policy)


@quirk("host-by-its-end", replaces="fetch_media", bugs=("S03",), caught_by=("MEDIA-22",))
def host_by_its_end(reference: str, policy: FetchPolicy) -> bytes:
    """A host is compared by how it ends, so that anybody can register one that is allowed."""
    host = (urlsplit(reference).hostname or "") if right._scheme(reference) in urls.PORTS else ""
    allowed = policy.hosts is not None and any(host.endswith(name) for name in policy.hosts)
    return right.fetch_media(reference, replace(policy, hosts=(host,)) if allowed else policy)


@quirk("any-port", replaces="fetch_media", bugs=(), caught_by=("MEDIA-20", "MEDIA-22"))
def any_port(reference: str, policy: FetchPolicy) -> bytes:
    """Ports are not looked at: the client may talk to whatever listens on an allowed host."""
    return right.fetch_media(reference, replace(policy, ports=tuple(range(1, 65536))))


@quirk("looked-up-again", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-23",))
def looked_up_again(reference: str, policy: FetchPolicy) -> bytes:
    """The connection is made by name, which is looked up again after the check; a name server may have changed its mind."""
    names: list[str] = []

    def resolve(host: str) -> Sequence[str]:
        names.append(host)
        return policy.resolve(host)

    def dial(address: str, port: int, timeout_s: float) -> socket.socket:
        return policy.dial(policy.resolve(names[-1])[0] if names else address, port, timeout_s)

    return right.fetch_media(reference, replace(policy, resolve=resolve, dial=dial))


@quirk("cut-to-the-limit", replaces="fetch_media", bugs=(), caught_by=("MEDIA-24", "MEDIA-29"))
def cut_to_the_limit(reference: str, policy: FetchPolicy) -> bytes:
    """A medium that is too long is cut, and half of it goes to the decoder."""
    return right.fetch_media(reference, replace(policy, max_bytes=HUGE))[: policy.max_bytes]


@quirk("limit-for-servers-only", replaces="fetch_media", bugs=(), caught_by=("MEDIA-24",))
def limit_for_servers_only(reference: str, policy: FetchPolicy) -> bytes:
    """What came with the request itself may have any length."""
    return right.fetch_media(reference, replace(policy, max_bytes=HUGE) if reference[:4] == "data" else policy)


@quirk("any-status", replaces="fetch_media", bugs=(), caught_by=("MEDIA-25", "MEDIA-26"))
def any_status(reference: str, policy: FetchPolicy) -> bytes:
    """The page that tells of an error is taken for the medium."""
    return _over_http(reference, policy, any_status=True)


@quirk("time-limit-for-each-read", replaces="fetch_media", bugs=(), caught_by=("MEDIA-26",))
def time_limit_for_each_read(reference: str, policy: FetchPolicy) -> bytes:
    """The limit starts anew with each byte, so that a patient server holds the connection for hours."""
    return _over_http(reference, policy)


@quirk("paths-stay-quoted", replaces="fetch_media", bugs=(), caught_by=("MEDIA-27",))
def paths_stay_quoted(reference: str, policy: FetchPolicy) -> bytes:
    """A file URL is cut after its scheme, and a blank in a name stays %20."""
    return right.fetch_media(reference.removeprefix("file://"), policy)


@quirk("folder-by-its-letters", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-28",))
def folder_by_its_letters(reference: str, policy: FetchPolicy) -> bytes:
    """Paths are compared letter by letter, so that /media allows /media-private."""
    real = os.path.realpath(reference)
    inside = reference.startswith("/") and any(real.startswith(folder) for folder in policy.folders)
    return right.fetch_media(reference, replace(policy, folders=(os.path.dirname(real),)) if inside else policy)


@quirk("links-followed", replaces="fetch_media", bugs=("ssrf-cves",), caught_by=("MEDIA-28",))
def links_followed(reference: str, policy: FetchPolicy) -> bytes:
    """The path is cleaned of `..` by its letters and compared; a link inside the folder leads out of it."""
    clean = os.path.normpath(reference)
    if any(Path(clean).is_relative_to(folder) for folder in policy.folders) and "\0" not in clean:
        return right.fetch_media(reference, replace(policy, folders=(os.path.dirname(os.path.realpath(clean)),)))
    return right.fetch_media(reference, policy)


@quirk("files-of-any-length", replaces="fetch_media", bugs=(), caught_by=("MEDIA-29",))
def files_of_any_length(reference: str, policy: FetchPolicy) -> bytes:
    """Files are trusted, whatever their length."""
    return right.fetch_media(reference, replace(policy, max_bytes=HUGE) if reference.startswith("/") else policy)


@quirk("path-in-the-refusal", replaces="fetch_media", bugs=(), caught_by=("MEDIA-30",))
def path_in_the_refusal(reference: str, policy: FetchPolicy) -> bytes:
    """The refusal shows the path as the system resolved it, and so where a link leads to."""
    try:
        return right.fetch_media(reference, policy)
    except MediaError:
        path = os.path.realpath(reference.removeprefix("file://").replace("\0", ""))
        raise ValueError(f"cannot open {path}") from None


@quirk("any-failure-is-the-servers", replaces="fetch_media", bugs=("M01",), caught_by=("MEDIA-30", "MEDIA-31"))
def any_failure_is_the_servers(reference: str, policy: FetchPolicy) -> bytes:
    """Everything that goes wrong is wrapped into a RuntimeError, which a server answers with 500."""
    try:
        return right.fetch_media(reference, policy)
    except MediaError as error:
        raise RuntimeError(f"error while loading data: {error}") from None


def _same(policy: FetchPolicy) -> Callable[[str], Sequence[str]]:
    """A resolver that asks once for each name."""
    known: dict[str, Sequence[str]] = {}
    return lambda host: known.setdefault(host, policy.resolve(host)) if host not in known else known[host]


def _over_http(reference: str, policy: FetchPolicy, *, join: bool = True, any_status: bool = False) -> bytes:
    """A fetch with the library's own connection: each step has the whole time, and redirects are followed by hand."""
    if right._scheme(reference) != "http" or "http" not in policy.schemes:
        return right.fetch_media(reference, policy)
    if policy.max_redirects < 0:
        raise MediaError("the server redirects too often")
    url = urls.parse(reference, policy)
    host, port, address = urls.check_host(url, policy)
    connection = http.client.HTTPConnection(host, port)
    connection.sock = policy.dial(address, port, policy.timeout_s)
    connection.sock.settimeout(policy.timeout_s)
    try:
        connection.request("GET", url.path)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        raise MediaError("the server did not answer in time") from None
    finally:
        connection.close()
    if answer.status in right.REDIRECTS:
        target = urljoin(reference, answer.getheader("Location") or "") if join else answer.getheader("Location") or ""
        urls.parse(target, policy)
        fewer = replace(policy, max_redirects=policy.max_redirects - 1)
        return _over_http(target, fewer, join=join, any_status=any_status)
    if not body or len(body) > policy.max_bytes or not (any_status or answer.status == 200):
        raise MediaError("the server sent no medium")
    return body
