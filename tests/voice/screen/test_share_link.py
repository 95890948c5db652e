"""A link to share a screen works for one person, once, for a few minutes. Anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.screen.share_link import MAX_OPEN_LINKS, LinkRefusal, LinkRefusedError, ShareLinks

NOW = 1_760_000_000.0


def links() -> ShareLinks:
    return ShareLinks(valid_s=300)


def give(given: ShareLinks, now: float = NOW, user_id: int = 11) -> str:
    return given.give(guild_id=7, user_id=user_id, session_id="evening", now=now)


def refusal(given: ShareLinks, token: str, now: float = NOW) -> LinkRefusal:
    with pytest.raises(LinkRefusedError) as caught:
        given.redeem(token, now=now)
    return caught.value.reason


def test_a_link_is_good_once_and_until_it_expires() -> None:
    """Everybody who comes later is refused. A token is plain enough for a URL's fragment."""
    given = links()
    used, late = give(given), give(given)
    assert all(char.isalnum() or char in "-_" for char in used)
    claim = given.redeem(used, now=NOW + 299.9)
    assert (claim.guild_id, claim.user_id, claim.session_id) == (7, 11, "evening")
    assert refusal(given, used) is LinkRefusal.USED
    assert refusal(given, late, now=NOW + 300) is LinkRefusal.EXPIRED


@given(st.text(max_size=200))
def test_no_other_text_is_a_link(text: str) -> None:
    """Nor is the token of another process."""
    given = links()
    token = give(given)
    for other in (text, f"{text}.{token}", token[:-1], give(links())):
        assert refusal(given, other) is LinkRefusal.UNKNOWN


def test_links_do_not_pile_up() -> None:
    """If there are too many, the oldest are removed and cannot be used."""
    given = links()
    first = give(given)
    for _ in range(MAX_OPEN_LINKS):
        last = give(given)
    assert refusal(given, first) is LinkRefusal.UNKNOWN
    given.redeem(last, now=NOW)
