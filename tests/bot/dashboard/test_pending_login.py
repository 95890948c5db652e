"""The cookie of a login that is at Discord: nobody can read, change or make one, and it lapses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.dashboard.discord_login import VALID_S, PendingLoginSeal
from tests.fakes.clock import FakeClock

BACK = "https://watch.example.org/login"


def seal(clock: FakeClock | None = None) -> PendingLoginSeal:
    """Return the seal of a process."""
    return PendingLoginSeal((clock or FakeClock()).monotonic)


def test_a_login_comes_back_as_it_was() -> None:
    """What is compared with Discord's way back is all in the cookie, and none of it can be read there."""
    own = seal()
    pending, cookie = own.begin(BACK)
    assert own.open(cookie) == pending
    assert pending.redirect_uri == BACK
    for secret in (pending.state, pending.verifier, BACK):
        assert len(secret) >= 30
        assert secret not in cookie
        assert secret.encode().hex() not in cookie
    # Fits into a browser's 4,096 bytes and into the server's limit for a line, with the other cookies.
    assert len(cookie) < 1_000
    assert cookie.isalnum()


def test_a_login_lapses() -> None:
    """The browser's own clock does not count."""
    clock = FakeClock()
    own = seal(clock)
    pending, cookie = own.begin(BACK)
    clock.advance(VALID_S - 1)
    assert own.open(cookie) == pending
    clock.advance(1)
    assert own.open(cookie) is None


OWN = seal()
COOKIE = OWN.begin(BACK)[1]


@given(st.one_of(st.text(), st.binary(max_size=200).map(bytes.hex)))
def test_nobody_can_make_a_cookie(text: str) -> None:
    """Whatever a browser sends is refused without an error."""
    assert OWN.open(text) is None


@given(st.integers(0, len(COOKIE) - 1), st.sampled_from("0123456789abcdefg \u00e9"))
def test_nobody_can_change_a_cookie(place: int, letter: str) -> None:
    """A single digit that differs makes it nobody's."""
    changed = COOKIE[:place] + letter + COOKIE[place + 1 :]
    assert (OWN.open(changed) is None) is (changed != COOKIE)
