"""Who may silence the bot, for how long, and who may take it back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.participation.silence import Silence


def test_for_now_is_for_that_session() -> None:
    """A new session begins without it."""
    silence = Silence().for_now("a")
    assert silence.holds("a", now=1e12)
    assert not silence.holds("b", now=0.0)
    assert not silence.holds(None, now=0.0)


def test_for_now_may_be_for_some_minutes() -> None:
    """And is over then by itself."""
    silence = Silence().for_now("a", until=600.0)
    assert silence.holds("a", now=599.9)
    assert not silence.holds("a", now=600.0)


def test_for_good_is_everywhere_until_a_moderator_lifts_it() -> None:
    """A member takes back what members did, and nothing else."""
    silence = Silence().for_good().for_now("a")
    lifted = silence.lifted(by_moderator=False)
    assert lifted.holds("b", now=0.0)
    assert not lifted.holds_for_now("a", now=0.0)
    assert not silence.lifted(by_moderator=True).holds("a", now=0.0)


@given(st.lists(st.sampled_from(["now", "good", "member"]), max_size=12), st.floats(0, 1e9))
def test_no_member_ever_ends_a_moderators_silence(steps: list[str], now: float) -> None:
    """Whatever members do after it."""
    silence = Silence().for_good()
    for step in steps:
        match step:
            case "now":
                silence = silence.for_now("a", until=now)
            case "good":
                silence = silence.for_good()
            case _:
                silence = silence.lifted(by_moderator=False)
    assert silence.holds("a", now=now)
