"""What is counted of people who speak at once, and what counts as growth."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from benchmarks.cluster.bot_process import texts_of
from benchmarks.figures import number_at
from benchmarks.load.bench import load_targets, of_runs, summary
from benchmarks.load.encrypted_room import BOT, PACKETS_A_TURN, PEOPLE, EncryptedRoom
from benchmarks.load.growth import growth
from benchmarks.load.receiving_process import ReceivingProcess
from benchmarks.report import Json
from bot.events import QueuesMeasured, RoomOpened, UtteranceTranscribed
from voice.queue_figures import QueueFigures


def test_what_became_no_sound_is_lost_and_the_warm_up_costs_nothing() -> None:
    """The cost is of the packets after the warm-up, and every packet has to become sound."""
    sent: dict[str, Json] = {"packets": 1000, "measured": 500, "latest_ms": 3.0}
    found: dict[str, Json] = {
        "wall_s": 10.0,
        "cpu_s": 2.0,
        "loop_lag": {"p99_ms": 4.0},
        "texts": 40,
        "counters": {"decoded": 980, "silence": 5, "late": 15},
        "dropped": {},
    }
    figures = summary(sent, found)
    assert [figures[name] for name in ("sent", "lost", "core", "cpu_s_a_speaker_second")] == [1000, 15, 0.2, 0.2]


def test_the_whole_bot_is_judged_by_the_median_lag_and_all_frames() -> None:
    """Two runs of three reach the goal for the lag. One frame that any of them lost is too many."""

    def run(lag_ms: float, *, lost: int, texts: int) -> dict[str, Json]:
        return {"loop_lag": {"p99_ms": lag_ms}, "sent": 1000, "lost": lost, "texts": texts}

    runs = [run(90.0, lost=0, texts=40), run(18.0, lost=1, texts=30), run(19.0, lost=0, texts=50)]
    together = of_runs(runs)
    assert (together["loop_lag"], together["run 1"]) == ({"p99_ms": 19.0}, runs[0])
    assert [together[name] for name in ("sent", "lost", "texts")] == [3000, 1, 30]
    judged = [each for each in load_targets({"whole bot": {"100 speakers": together}}) if each.met is not None]
    assert [each.met for each in judged] == [True, False]
    unheard = of_runs([*runs, run(1.0, lost=0, texts=0)])
    assert load_targets({"whole bot": {"100 speakers": unheard}})[3].met is None


async def test_only_what_came_since_the_beginning_is_counted() -> None:
    """Drops count from `begin`, texts from `warm_up`; a room that began anew is told."""
    async with AsyncExitStack() as stack:
        process = ReceivingProcess(stack)

        def report(overloaded: int) -> None:
            process.observe(QueuesMeasured((QueueFigures("recognise", 0, 68, {"overloaded": overloaded}),), 0.0))

        report(3)
        await process.begin()
        process.observe(UtteranceTranscribed("warm-up", 1, "Hello.", 0.0, 1.0, 1.5))
        report(10)
        await process.warm_up(0.0)
        process.observe(UtteranceTranscribed("measured", 1, "Hello.", 0.0, 1.0, 1.5))
        process.observe(RoomOpened("an-evening", 1, 2, resumed=True, at=0.0))
        assert (await process.end())["texts"] == 1
        counted = await process.counters()
    assert (counted["dropped"], counted["rooms_opened"]) == ({"recognise: overloaded": 7}, 1)


def test_growth_compares_the_second_quarter_with_the_last() -> None:
    """What fills in the first quarter is no growth."""
    rising = [{"rss_mb": float(number), "files": 7.0} for number in range(20)]
    filling = [{"rss_mb": min(5.0, number), "files": 7.0} for number in range(20)]
    assert growth(rising) == {"rss_mb": 10.0, "files": 0.0}
    assert growth(filling) == {"rss_mb": 0.0, "files": 0.0}


def test_everybody_in_the_encrypted_room_is_heard_and_forgotten() -> None:
    """With keys that change whenever somebody leaves or comes, announced or not; the session has only who is there."""
    room, turns = EncryptedRoom(), 2 * PEOPLE
    room.send(turns * PACKETS_A_TURN)
    counts = room.receiver.counters()
    assert counts.received == turns * PACKETS_A_TURN
    assert counts.decoded >= 0.9 * counts.received
    assert counts.dave_failures == counts.not_ready == counts.clear == counts.transport_failures == 0
    last = BOT + PEOPLE + turns - 1
    assert set(room.bot.session.get_user_ids()) == {
        str(user_id) for user_id in (BOT, *range(last - PEOPLE + 1, last + 1))
    }


def test_a_text_is_as_late_as_the_bots_log_says() -> None:
    """And what became no text is counted by its reason."""
    lines: list[dict[str, Any]] = [
        *({"event": "utterance_transcribed", "end_to_text_ms": ms} for ms in (900.0, 300.0, 400.0)),
        *({"event": "utterance_dropped", "reason": reason} for reason in ("noise", "noise", "opted_out")),
        {"event": "room_opened"},
    ]
    figures = texts_of(lines)
    assert [number_at(figures, "end_to_text_ms", each) for each in ("count", "p50", "max")] == [3, 400.0, 900.0]
    assert figures["dropped"] == {"noise": 2, "opted_out": 1}
