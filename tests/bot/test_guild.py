"""Who may silence the bot, for how long, and who may end the silence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.guild import Silence


def test_for_now_is_for_that_session() -> None:
    """A session's silence does not apply to the next session."""
    silence = Silence().silence_session("a")
    assert silence.applies("a", now=1e12)
    assert not silence.applies("b", now=0.0)
    assert not silence.applies(None, now=0.0)


def test_for_now_may_be_for_some_minutes() -> None:
    """Such a silence ends by itself, and not before its time, whatever session it is by then."""
    silence = Silence().silence_session("a").silence_until(600.0)
    for session_id in ("a", "b", None):
        assert silence.applies(session_id, now=599.9)
        assert not silence.applies(session_id, now=600.0)
    assert Silence() == silence.lift(by_manager=False)


def test_the_longer_of_two_silences_holds() -> None:
    """Somebody asks for silence aloud while the bot is silent for some minutes: neither shortens the other."""
    silence = Silence().silence_until(600.0).silence_session("a")
    assert silence.applies("b", now=599.9)
    assert silence.applies("a", now=600.0)
    assert not silence.applies("b", now=600.0)


def test_for_good_is_everywhere_until_a_manager_lifts_it() -> None:
    """A member can end only a silence that a member started; a manager can end every silence."""
    silence = Silence().silence_always().silence_session("a")
    lifted = silence.lift(by_manager=False)
    assert lifted.applies("b", now=0.0)
    assert not lifted.applies_for_now("a", now=0.0)
    assert not silence.lift(by_manager=True).applies("a", now=0.0)


@given(st.lists(st.sampled_from(["now", "minutes", "good", "member"]), max_size=12), st.floats(0, 1e9))
def test_no_member_ever_ends_a_managers_silence(steps: list[str], now: float) -> None:
    """A manager's silence still applies after any sequence of members' actions."""
    silence = Silence().silence_always()
    for step in steps:
        match step:
            case "now":
                silence = silence.silence_session("a")
            case "minutes":
                silence = silence.silence_until(now)
            case "good":
                silence = silence.silence_always()
            case _:
                silence = silence.lift(by_manager=False)
    assert silence.applies("a", now=now)
