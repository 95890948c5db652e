"""What counts as growth, and that the packets are really received, with end-to-end encryption too."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.leaks.bench import leaks_targets
from benchmarks.leaks.encrypted_room import BOT, PACKETS_A_TURN, PEOPLE, EncryptedRoom
from benchmarks.leaks.growth import as_figures, growth, holding
from benchmarks.leaks.process import SSRCS, Strangers


def test_growth_compares_the_second_quarter_with_the_last() -> None:
    rising = [{"rss_mb": float(number), "files": 7.0} for number in range(20)]
    filling = [{"rss_mb": min(5.0, number), "files": 7.0} for number in range(20)]
    assert growth(rising) == {"rss_mb": 10.0, "files": 0.0}
    assert growth(filling) == {"rss_mb": 0.0, "files": 0.0}


def test_a_thread_or_a_file_more_is_not_met() -> None:
    grown = {"rss_mb": 1.0, "threads": 0.0, "files": 1.0, "tasks": 0.0}
    targets = leaks_targets({"1,000 joins": {"growth": {**grown}}})
    assert [target.met for target in targets] == [True, True, False, True]


@pytest.mark.asyncio
async def test_what_a_process_holds_is_counted() -> None:
    before = as_figures(holding())
    task = asyncio.create_task(asyncio.sleep(60), name="one-more")
    after = as_figures(holding())
    task.cancel()
    assert after["tasks"] == before["tasks"] + 1
    assert after["rss_mb"] > 1


def test_strangers_are_heard_if_they_were_announced() -> None:
    strangers = Strangers()
    strangers.send(10 * SSRCS)
    counts = strangers._receiver.counters()
    assert counts.received == 10 * SSRCS
    assert counts.decoded >= 9 * SSRCS // 2
    assert counts.transport_failures == counts.undecodable == 0


def test_everybody_in_the_encrypted_room_is_heard_and_forgotten() -> None:
    """With keys that change whenever somebody leaves or comes, announced or not; the session has only who is there."""
    room, turns = EncryptedRoom(), 2 * PEOPLE
    room.send(turns * PACKETS_A_TURN)
    counts = room.receiver.counters()
    assert counts.received == turns * PACKETS_A_TURN
    assert counts.decoded >= 0.9 * counts.received
    assert counts.dave_failures == counts.not_ready == counts.clear == counts.transport_failures == 0
    last = BOT + PEOPLE + turns - 1
    there = {str(user_id) for user_id in (BOT, *range(last - PEOPLE + 1, last + 1))}
    assert set(room.bot.session.get_user_ids()) == there
    assert room.bot.epochs_landed >= 2 * turns
    assert room.bot.recoveries == 0
