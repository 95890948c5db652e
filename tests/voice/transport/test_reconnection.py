"""When the connection tries again: after which close codes, and after which pauses."""

from __future__ import annotations

import random
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest

from voice.transport.reconnection import (
    FIRST_PAUSE_S,
    HEALTHY_S,
    LONGEST_PAUSE_S,
    RATE_LIMITED,
    RESUMABLE,
    ReconnectPauses,
    fatal_reason,
)


def test_fatal_codes_name_themselves_and_cannot_be_resumed() -> None:
    fatal = [code for code in range(1000, 5000) if fatal_reason(code) is not None]
    assert {4004, 4017} <= set(fatal)
    assert all(str(code) in str(fatal_reason(code)) for code in fatal)
    assert not RESUMABLE & set(fatal)


def test_what_a_new_session_mends_is_not_fatal() -> None:
    """Codes that a new session repairs are not fatal: 4006 and 4009 (session gone), 4014 (moved or removed), and no
    code.
    """
    assert [fatal_reason(code) for code in (4006, 4009, 4014, None)] == [None] * 4


def luck(share: float = 0.0) -> random.Random:
    """Return what always draws the same number; 0 leaves every pause as long as it can be."""
    return cast("random.Random", SimpleNamespace(random=lambda: share))


def after_drops(count: int, *, healthy_s: float, share: float = 0.0) -> list[float]:
    """Return the pauses before the new connections if each of them breaks `healthy_s` after it came up."""
    pauses, now, found = ReconnectPauses(luck(share)), 0.0, []
    for _ in range(count):
        pauses.connected(now)
        now += healthy_s
        pauses.lost(now)
        found.append(pauses.next_s())
        now += found[-1]
    return found


def test_each_of_seven_drops_four_seconds_after_recovery_is_over_quickly() -> None:
    """discord.py's own pauses grow to 120 s in this case, because nothing resets them."""
    assert after_drops(7, healthy_s=4.0) == [FIRST_PAUSE_S] * 7


def test_no_pause_is_longer_than_ten_seconds_however_long_the_server_is_away() -> None:
    pauses = ReconnectPauses(luck())
    found = [pauses.next_s() for _ in range(1000)]
    assert max(found) == LONGEST_PAUSE_S == 10.0
    assert all(earlier <= later for earlier, later in pairwise(found))
    assert sum(found[:6]) >= 10.0


def test_a_server_that_throws_the_bot_out_at_once_is_asked_ever_less_often() -> None:
    found = after_drops(8, healthy_s=HEALTHY_S - 1)
    assert found == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_after_a_limit_of_discord_the_bot_waits_its_longest_pause() -> None:
    assert ReconnectPauses(luck()).next_s(close_code=RATE_LIMITED) == LONGEST_PAUSE_S


@pytest.mark.parametrize(("share", "pause_s"), [(0.0, FIRST_PAUSE_S), (1.0, FIRST_PAUSE_S / 2)])
def test_rooms_do_not_come_back_at_the_same_moment(share: float, pause_s: float) -> None:
    assert after_drops(1, healthy_s=4.0, share=share) == [pause_s]
