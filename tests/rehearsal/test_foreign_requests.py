"""The local servers refuse what a web page may have caused."""

from __future__ import annotations

import pytest

from rehearsal.foreign_requests import foreign_request


@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        ({"Host": "127.0.0.1:8880"}, False),
        ({"Host": "localhost:8880"}, False),
        ({"Host": "LOCALHOST"}, False),
        ({}, True),
        ({"Host": ""}, True),
        ({"Host": "evil.example:8880"}, True),
        ({"Host": "127.0.0.1.evil.example"}, True),
        ({"Host": "127.0.0.1:8880.evil.example"}, True),
        ({"Host": "127.0.0.1:8880", "Origin": "http://127.0.0.1:8880"}, True),
        ({"Host": "127.0.0.1:8880", "Origin": "null"}, True),
    ],
)
def test_a_request_names_this_machine_and_no_page(headers: dict[str, str], foreign: bool) -> None:
    """A request is refused unless its host is this machine, and if it comes from a page, even one of this machine."""
    assert bool(foreign_request(headers)) is foreign


def test_a_server_at_another_address_answers_to_that_address() -> None:
    """In a network of its own it has an address that other machines reach; the loopback's is a foreign one there."""
    assert foreign_request({"Host": "10.77.0.1:8880"}, address="10.77.0.1") == ""
    assert "10.77.0.1" in foreign_request({"Host": "127.0.0.1:8880"}, address="10.77.0.1")
