"""URLs: whether one may be asked, and the one address that it leads to.

1. One parser. A URL that two parsers may read in two ways (a backslash, user names, control characters, an address
   written as 127.1) is refused before it is read.
2. One resolution. A name is looked up once, and every address that it has must be one of the open internet.
3. What is allowed is named: schemes, ports and host names, compared exactly.

Source: RFC 3986; the URL standard of WHATWG, for which hosts are IPv4 addresses in disguise; the special-purpose address
registries of IANA, which `ipaddress` knows.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from reference.media.errors import MediaError
from reference.media.policy import FetchPolicy

PORTS = {"http": 80, "https": 443}

PLAIN = re.compile(r"[!-\[\]-~]+")
"""Printable ASCII without blank and backslash: what a URL is written with."""

HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")
LAST_LABEL_IS_A_NUMBER = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")

DISGUISES = tuple(
    ip_network(block)
    for block in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10")
)
"""IPv6 blocks that carry an IPv4 address to somewhere else: compatible, mapped, NAT64, Teredo and 6to4; and site-local."""


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


def parse(url: str, policy: FetchPolicy) -> SplitResult:
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
    if not (_is_address(host) if match[1].startswith("[") else HOST.fullmatch(host)):
        raise MediaError("this is no host name, and no address")
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
