"""A link to share a screen works for one person, once, for a few minutes. Anything else is refused."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.screen.share_link import (
    MAX_OPEN_LINKS,
    MAX_TOKEN_CHARS,
    LinkClaim,
    LinkRefusal,
    LinkRefusedError,
    ShareLinks,
    new_key,
    sign_claim,
    verify_token,
)

KEY = b"k" * 32
NOW = 1_760_000_000.0
CLAIM = LinkClaim(guild_id=7, user_id=11, session_id="evening", nonce="n1", expires_at=NOW + 300)


def refusal(token: str, *, key: bytes = KEY, now: float = NOW) -> LinkRefusal:
    with pytest.raises(LinkRefusedError) as caught:
        verify_token(token, key, now=now)
    return caught.value.reason


def links() -> ShareLinks:
    return ShareLinks(KEY, valid_s=300)


def give(given: ShareLinks, now: float = NOW, user_id: int = 11) -> str:
    return given.give(guild_id=7, user_id=user_id, session_id="evening", now=now)


def test_a_token_says_what_was_signed() -> None:
    """A token contains the signed claim and is short and plain enough for a URL's fragment."""
    token = sign_claim(CLAIM, KEY)
    assert verify_token(token, KEY, now=NOW) == CLAIM
    assert len(token) < MAX_TOKEN_CHARS
    assert all(char.isalnum() or char in "-_." for char in token)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", LinkRefusal.MALFORMED),
        (".", LinkRefusal.FORGED),
        ("a.b.c", LinkRefusal.MALFORMED),
        ("!!.??", LinkRefusal.MALFORMED),
        ("x" * (MAX_TOKEN_CHARS + 1), LinkRefusal.MALFORMED),
        (sign_claim(CLAIM, b"another key" * 3), LinkRefusal.FORGED),
        (sign_claim(CLAIM, KEY).partition(".")[0] + ".", LinkRefusal.FORGED),
    ],
)
def test_what_is_no_token_of_ours_is_refused(token: str, reason: LinkRefusal) -> None:
    """A token without a valid signature is refused with a reason, and is not parsed."""
    assert refusal(token) is reason


def test_a_token_ends() -> None:
    """A token is valid until just before its expiry time."""
    assert verify_token(sign_claim(CLAIM, KEY), KEY, now=CLAIM.expires_at - 0.001) == CLAIM
    assert refusal(sign_claim(CLAIM, KEY), now=CLAIM.expires_at) is LinkRefusal.EXPIRED


@given(place=st.integers(min_value=0), char=st.sampled_from("ABCxyz019-_"))
def test_no_letter_of_a_token_can_be_changed(place: int, char: str) -> None:
    """A token with a changed character is refused, unless only unused bits of base64's last character changed."""
    token = sign_claim(CLAIM, KEY)
    place %= len(token)
    changed = token[:place] + char + token[place + 1 :]
    try:
        assert verify_token(changed, KEY, now=NOW) == CLAIM
    except LinkRefusedError:
        return
    body, _, mac = changed.partition(".")
    same = token.partition(".")
    decoded = [base64.urlsafe_b64decode(each + "=" * (-len(each) % 4)) for each in (body, mac, same[0], same[2])]
    assert decoded[:2] == decoded[2:]


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(token: str) -> None:
    """Any text that is no token is refused."""
    with pytest.raises(LinkRefusedError):
        verify_token(token, KEY, now=NOW)


def test_signed_nonsense_is_refused() -> None:
    """A signed claim of the wrong shape is refused, for example that of another version."""
    from voice.screen.share_link import _armoured, _mac

    for said in ({"guild": 7}, [1, 2], "text", [7, 11, "evening", "n1", NOW + 300, "more"]):
        body = json.dumps(said).encode()
        assert refusal(f"{_armoured(body)}.{_armoured(_mac(body, KEY))}") is LinkRefusal.MALFORMED


def test_a_link_is_good_once() -> None:
    """A link can be used only once. Everybody who comes later is refused."""
    given = links()
    token = give(given)
    admission = given.redeem(token, now=NOW + 1)
    assert (admission.claim.guild_id, admission.claim.user_id, admission.claim.session_id) == (7, 11, "evening")
    with pytest.raises(LinkRefusedError) as caught:
        given.redeem(token, now=NOW + 2)
    assert caught.value.reason is LinkRefusal.USED


def test_a_page_comes_back_with_its_secret_until_the_share_ends() -> None:
    """A page comes back with its own secret until its share ends. No other text works as the secret."""
    given = links()
    admission = given.redeem(give(given), now=NOW)
    other = given.redeem(give(given, user_id=12), now=NOW)
    assert given.resume(admission.resume_secret) == admission.claim
    given.end(admission.claim.nonce)
    for secret in (admission.resume_secret, "", "guess", "\ud800", "x" * 10_000):
        with pytest.raises(LinkRefusedError) as caught:
            given.resume(secret)
        assert caught.value.reason is LinkRefusal.ENDED
    assert given.resume(other.resume_secret) == other.claim


def test_another_process_accepts_no_old_link() -> None:
    """A link from another process is refused, because each process has its own key."""
    token = give(ShareLinks(new_key(), valid_s=300))
    with pytest.raises(LinkRefusedError) as caught:
        ShareLinks(new_key(), valid_s=300).redeem(token, now=NOW)
    assert caught.value.reason is LinkRefusal.FORGED


def test_forgotten_links_do_not_pile_up() -> None:
    """Expired links are removed, and if there are too many, the oldest are removed and cannot be used."""
    given = links()
    first = give(given)
    for _ in range(MAX_OPEN_LINKS):
        last = give(given)
    with pytest.raises(LinkRefusedError):
        given.redeem(first, now=NOW)
    given.redeem(last, now=NOW)
    give(given, now=NOW + 301)
    assert len(given._open) == 1
