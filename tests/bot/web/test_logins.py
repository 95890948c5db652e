"""Login links and logged-in browsers, on a clock of the test, and how often logins are taken to Discord."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.dashboard.access import OPERATOR, DashboardUser
from bot.web.login_routes import (
    IDLE_S,
    LONGEST_S,
    MAX_LOGINS,
    MAX_LOGINS_OF_ONE_PERSON,
    MAX_TRIES,
    MAX_TRIES_OF_ONE_CLIENT,
    PER_S,
    Logins,
    LoginTries,
)
from tests.fakes.clock import FakeClock

ADA = DashboardUser("Ada", 2001)


def test_a_login_link_works_once_and_the_next_one_is_announced() -> None:
    """The first browser becomes the operator's; the same link then works for nobody, and the next one does."""
    announced: list[str] = []
    logins = Logins(FakeClock(), on_new_link=lambda: announced.append(logins.link_token))
    token = logins.link_token
    cookie = logins.redeem(token)
    assert logins.user(cookie) == OPERATOR
    assert OPERATOR.is_operator
    assert logins.redeem(token) is None
    assert announced == [logins.link_token]
    assert logins.redeem(logins.link_token) is not None


@given(st.text())
def test_no_other_text_is_a_link_or_a_cookie(text: str) -> None:
    """Whatever is not the link's secret logs nobody in, and whatever is not a cookie is nobody."""
    logins = Logins(FakeClock())
    cookie = logins.log_in(ADA)
    assert logins.redeem(text) is None
    assert logins.user(text) is None
    assert logins.user(None) is None
    assert logins.user(cookie) == ADA


def test_a_browser_is_logged_out_when_it_asks_or_was_silent_or_after_a_week() -> None:
    """A browser stays logged in while it is used, at most for a week."""
    clock = FakeClock()
    logins = Logins(clock)
    asked, silent, used = (logins.log_in(ADA) for _ in range(3))
    logins.log_out(asked)
    assert logins.user(asked) is None
    while clock.monotonic() + IDLE_S / 2 < LONGEST_S:
        clock.advance(IDLE_S / 2)
        assert logins.user(used) == ADA
    assert logins.user(silent) is None
    clock.advance(LONGEST_S - clock.monotonic())
    assert logins.user(used) is None


def test_the_browser_that_was_silent_for_longest_makes_room() -> None:
    """There are never more logins than the limit, and those in use stay."""
    logins = Logins(FakeClock())
    first, second = logins.log_in(ADA), logins.log_in(ADA)
    for number in range(MAX_LOGINS - 1):
        assert logins.user(first) == ADA
        last = logins.log_in(DashboardUser("Somebody", number))
    assert logins.user(first) == ADA
    assert logins.user(second) is None
    assert logins.user(last) == DashboardUser("Somebody", MAX_LOGINS - 2)


def test_one_person_logs_out_nobody_else() -> None:
    """Beyond their own limit people log out the browser of theirs that was silent for longest. The operator is a person
    too, whoever uses the links.
    """
    logins = Logins(FakeClock())
    ben, operator = logins.log_in(DashboardUser("Ben", 2002)), logins.log_in(OPERATOR)
    ada = [logins.log_in(replace(ADA, name=f"Ada {number}")) for number in range(3 * MAX_LOGINS)]
    assert [logins.user(cookie) is not None for cookie in ada[-MAX_LOGINS_OF_ONE_PERSON - 1 :]] == [
        False,
        *[True] * MAX_LOGINS_OF_ONE_PERSON,
    ]
    for _ in range(MAX_LOGINS):
        logins.redeem(logins.link_token)
    assert logins.user(operator) is None
    assert logins.user(ben) == DashboardUser("Ben", 2002)
    assert logins.user(ada[-1]) is not None


def test_a_browser_that_logs_in_again_has_one_login() -> None:
    """Its former cookie is overwritten, so nobody could log it out any more."""
    logins = Logins(FakeClock())
    first = logins.log_in(ADA)
    second = logins.log_in(ADA, instead_of=first)
    assert logins.user(first) is None
    third = logins.redeem(logins.link_token, instead_of=second)
    assert logins.user(second) is None
    assert logins.user(third) == OPERATOR
    assert third is not None
    assert logins.redeem("wrong", instead_of=third) is None
    assert logins.user(third) == OPERATOR


# The machine has been up for a day.
NOW = 86_400.0


@pytest.mark.parametrize(("client", "most"), [("north", MAX_TRIES_OF_ONE_CLIENT), (None, MAX_TRIES)])
def test_tries_in_a_minute_are_limited(client: str | None, most: int) -> None:
    """Behind a trusted proxy each household has its own number, and all together have one, also where it is not known
    who asks: invalid requests bar the whole machine. What was refused does not count.
    """
    tries = LoginTries()
    assert [tries.allows(client, NOW) for _ in range(most + 50)].count(True) == most
    assert tries.allows("south", NOW) is (client == "north")
    assert not tries.allows("north", NOW + PER_S - 1)
    assert tries.allows("north", NOW + PER_S)
    # Invalid requests in ten minutes, at most.
    assert 10 * MAX_TRIES < 10_000
