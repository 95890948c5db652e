"""Who may silence the bot, for how long, and who may take it back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.guild import Silence


def test_for_now_is_for_that_session() -> None:
    """A new session begins without it."""
    silence = Silence().silence_session("a")
    assert silence.applies("a", now=1e12)
    assert not silence.applies("b", now=0.0)
    assert not silence.applies(None, now=0.0)


def test_for_now_may_be_for_some_minutes() -> None:
    """And is over then by itself."""
    silence = Silence().silence_session("a", until=600.0)
    assert silence.applies("a", now=599.9)
    assert not silence.applies("a", now=600.0)


def test_for_good_is_everywhere_until_a_moderator_lifts_it() -> None:
    """A member takes back what members did, and nothing else."""
    silence = Silence().silence_always().silence_session("a")
    lifted = silence.lift(by_moderator=False)
    assert lifted.applies("b", now=0.0)
    assert not lifted.applies_for_now("a", now=0.0)
    assert not silence.lift(by_moderator=True).applies("a", now=0.0)


@given(st.lists(st.sampled_from(["now", "good", "member"]), max_size=12), st.floats(0, 1e9))
def test_no_member_ever_ends_a_moderators_silence(steps: list[str], now: float) -> None:
    """Whatever members do after it."""
    silence = Silence().silence_always()
    for step in steps:
        match step:
            case "now":
                silence = silence.silence_session("a", until=now)
            case "good":
                silence = silence.silence_always()
            case _:
                silence = silence.lift(by_moderator=False)
    assert silence.applies("a", now=now)
