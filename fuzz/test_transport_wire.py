"""Search for requests that do not arrive, and for messages that are believed."""

from hypothesis.strategies import SearchStrategy

from conformance.cases import Exact
from conformance.oracles.transport_wire import message
from conformance.suite.transport_wire_hostile import Hostile
from fuzz.search import searches
from fuzz.strategies.messages import cut_messages, longer_messages, requests
from reference.items import Request


@searches("TRANSPORT-01")
def test_any_request_arrives() -> SearchStrategy[Request]:
    return requests()


@searches("TRANSPORT-08", examples=40)
def test_any_handle_arrives() -> SearchStrategy[Request]:
    return requests(handles=True)


@searches("TRANSPORT-09", examples=40)
def test_any_request_is_sent_twice() -> SearchStrategy[Request]:
    return requests()


@searches("TRANSPORT-11", examples=40)
def test_any_equal_requests() -> SearchStrategy[Request]:
    return requests()


@searches("TRANSPORT-12", examples=20)
def test_any_cut() -> SearchStrategy[Request]:
    return requests()


@searches("TRANSPORT-18", examples=40)
def test_any_message_is_read() -> SearchStrategy[Exact]:
    return requests(handles=True).map(lambda request: Exact(request, message(request)))


@searches("TRANSPORT-19", examples=40)
def test_any_message_is_written() -> SearchStrategy[Exact]:
    return requests(handles=True).map(lambda request: Exact(request, message(request)))


@searches("TRANSPORT-21", examples=40)
def test_any_message_of_another_length() -> SearchStrategy[Hostile]:
    return cut_messages() | longer_messages()
