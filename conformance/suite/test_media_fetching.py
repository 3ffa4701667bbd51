"""MEDIA: what may be fetched, and from where.

No rule leaves this process: the network is `conformance.world.internet`, which notes every connection.
"""

from conformance.cases import Exact
from conformance.compare import equal, refuses
from conformance.engine import Engine
from conformance.requirement import SHOULD, requirement
from conformance.suite import media_fetches as cases
from conformance.suite import media_files as files
from conformance.suite.media_checks import is_told_as_the_clients_fault
from conformance.suite.media_fetches import BODY, Fetch
from conformance.world.internet import PUBLIC


@requirement("MEDIA-16", needs="fetch_media", cases=cases.DATA)
def test_a_data_uri_holds_its_own_bytes(engine: Engine, case: Exact) -> None:
    """A data URI MUST give the very bytes that it holds, in base64 or percent-encoded, and ask no server."""
    network = case.given.network()
    equal(case.given.by(engine, network), case.expected, "the bytes")
    equal(network.dialled, [], "the connections")


@requirement("MEDIA-17", needs="fetch_media", cases=cases.BAD_DATA, bugs=("M01", "M02"))
def test_a_data_uri_that_is_none_is_refused(engine: Engine, case: Fetch) -> None:
    """A data URI that is empty or not what it says MUST be refused; letters outside base64 are not left out."""
    refuses(lambda: case.by(engine, case.network()), case.reference[:60])


@requirement("MEDIA-18", needs="fetch_media", cases=cases.SERVED)
def test_a_url_gives_the_bytes_that_the_server_sent(engine: Engine, case: Fetch) -> None:
    """A URL that the policy allows MUST give the whole body, however it is framed, after as many redirects as allowed."""
    equal(case.by(engine, case.network()), BODY, "the bytes")


@requirement("MEDIA-19", needs="fetch_media", cases=cases.HIDDEN, bugs=("ssrf-cves",))
def test_a_host_inside_is_never_connected_to(engine: Engine, case: Fetch) -> None:
    """A host with an address that is not public MUST be refused before a connection is made, named or written out.

    Loopback, private, link-local, multicast and reserved addresses, and IPv6 addresses with an IPv4 one inside.
    """
    network = case.network()
    refuses(lambda: case.by(engine, network), f"{case.reference} at {[*case.names.values()] or 'that address'}")
    equal(network.dialled, [], "the connections")


@requirement("MEDIA-20", needs="fetch_media", cases=cases.LED_ASTRAY, bugs=("S03", "ssrf-cves"))
def test_every_redirect_is_checked_like_a_first_url(engine: Engine, case: Fetch) -> None:
    """The target of a redirect MUST pass every check of a first URL, be HTTP, and be within the number of redirects."""
    network = case.network()
    refuses(lambda: case.by(engine, network), f"{case.reference}, which redirects")
    equal({*network.dialled}, {(PUBLIC, 80)}, "the connections")


@requirement("MEDIA-21", needs="fetch_media", cases=cases.AMBIGUOUS, bugs=("S03", "ssrf-cves"))
def test_a_url_that_two_parsers_read_in_two_ways_is_refused(engine: Engine, case: Fetch) -> None:
    """A URL with user names, backslashes, control characters, odd hosts or ports MUST be refused unconnected."""
    network = case.network()
    refuses(lambda: case.by(engine, network), repr(case.reference))
    equal(network.dialled, [], "the connections")


@requirement("MEDIA-22", needs="fetch_media", cases=cases.NOT_NAMED, bugs=("S03", "ssrf-cves"))
def test_what_the_policy_does_not_name_is_refused(engine: Engine, case: Fetch) -> None:
    """A scheme, host or port that the policy does not name MUST be refused; host names match exactly."""
    network = case.network()
    refuses(lambda: case.by(engine, network), f"{case.reference!r} with {dict(case.limits)}")
    equal(network.dialled, [], "the connections")


@requirement("MEDIA-23", needs="fetch_media", cases=cases.REBOUND, bugs=("ssrf-cves",))
def test_the_connection_goes_to_the_address_that_was_checked(engine: Engine, case: Fetch) -> None:
    """A connection MUST go to an address that was checked, also when the name has another one a moment later."""
    network = case.network()
    equal(case.by(engine, network), BODY, "the bytes")
    equal({*network.dialled}, {(PUBLIC, 80)}, "the connections")


@requirement("MEDIA-24", needs="fetch_media", cases=cases.TOO_LONG)
def test_a_medium_beyond_the_limit_is_refused(engine: Engine, case: Fetch) -> None:
    """A medium of more bytes than the limit MUST be refused, whether or not its length was announced."""
    refuses(lambda: case.by(engine, case.network()), f"{len(BODY)} bytes, where {case.limits['max_bytes']} are allowed,")


@requirement("MEDIA-25", needs="fetch_media", cases=cases.NOT_WHOLE)
def test_an_answer_that_is_no_whole_medium_is_refused(engine: Engine, case: Fetch) -> None:
    """An answer with another status than 200, without a body, or cut off MUST be refused, and never stand for a medium."""
    refuses(lambda: case.by(engine, case.network()), case.reference)


@requirement("MEDIA-26", needs="fetch_media", cases=cases.SLOW)
def test_a_slow_server_is_given_up(engine: Engine, case: Fetch) -> None:
    """A fetch MUST end with its time limit, also when single bytes keep arriving within it."""
    refuses(lambda: case.by(engine, case.network()), f"a server that takes longer than {case.limits['timeout_s']} s")


@requirement("MEDIA-27", needs="fetch_media", cases=files.FILES)
def test_a_file_in_an_allowed_folder_is_read(engine: Engine, case: str) -> None:
    """A file inside an allowed folder MUST be read, by its path or its URL."""
    with files.folders() as root:
        equal(files.take(engine, case, root, max_bytes=len(BODY)), BODY, "the bytes")


@requirement("MEDIA-28", needs="fetch_media", cases=files.OUTSIDE, bugs=("ssrf-cves",))
def test_no_other_file_is_read(engine: Engine, case: str) -> None:
    """What is no regular file inside an allowed folder MUST be refused, after `..` and links are resolved."""
    with files.folders() as root:
        refuses(lambda: files.take(engine, case, root), repr(case))


@requirement("MEDIA-29", needs="fetch_media", cases={"one-byte": 1, "all-but-one": len(BODY) - 1})
def test_a_file_beyond_the_limit_is_refused(engine: Engine, case: int) -> None:
    """A file of more bytes than the limit MUST be refused."""
    with files.folders() as root:
        refuses(
            lambda: files.take(engine, "{root}/media/cat", root, max_bytes=case), f"{len(BODY)} bytes, with {case} allowed,"
        )


@requirement("MEDIA-30", needs="fetch_media", cases=files.OUTSIDE, level=SHOULD)
def test_a_refused_file_is_told_without_its_place(engine: Engine, case: str) -> None:
    """The refusal of a file SHOULD be a ValueError that shows no resolved path: a client learns nothing about the disk."""
    with files.folders() as root:
        is_told_as_the_clients_fault(lambda: files.take(engine, case, root), str(root / "elsewhere"), f"{root}/secret", "Errno")


@requirement(
    "MEDIA-31", needs="fetch_media", cases=cases.BAD_DATA | cases.NOT_WHOLE | cases.NOT_NAMED, bugs=("M01",), level=SHOULD
)
def test_a_refused_reference_is_told_as_the_clients_fault(engine: Engine, case: Fetch) -> None:
    """The refusal of a reference SHOULD be a ValueError without a memory address: the client's fault, not the server's."""
    is_told_as_the_clients_fault(lambda: case.by(engine, case.network()))
