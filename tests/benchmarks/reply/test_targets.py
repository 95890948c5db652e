"""Targets are read from the figures, and a target that was not measured says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reply.targets import reply_targets

if TYPE_CHECKING:
    from benchmarks.report import Json

FIGURES: dict[str, Json] = {
    "answers": {"besides_the_model_server_ms": {"p50": 450.0, "p95": 1_600.0}, "recognised_ahead": 0.54},
    "pauses": {"cut_share": 0.05, "cut": 5, "pauses_inside": 100, "end_known_after_ms": {"p50": 601.0, "count": 89}},
    "deciding": {
        "held_out": {
            "recall": 0.97,
            "unwanted_in_10_min": 1.2,
            "without_model": {"unwanted_in_10_min": 0.4},
        },
        "crowd": {"worst_p95_ms": 1.4},
    },
    "pacing": {"rooms": {"1": {"jitter_p99_ms": 9.0}, "10": {"jitter_p99_ms": 3.0}}},
}


def test_each_target_is_met_or_not() -> None:
    """Each target is judged by the figure that it names."""
    targets = reply_targets(FIGURES)
    met = {target.name: target.met for target in targets}
    assert [verdict for name, verdict in met.items() if "first voiced" in name] == [True, False]
    assert met["answers whose text was recognised ahead"] is False
    assert met["pauses inside speech that are cut"] is True
    assert met["end of speech known after, P50 ms"] is False
    assert [verdict for name, verdict in met.items() if "held-out" in name] == [True, False, True]
    assert met["deciding with 99 hostile names and 400 words, CPU P95 ms"] is True
    assert met["pacing with 10 rooms, jitter P99 ms"] is True
    assert met["silent after the overlap qualified, P95 ms"] is None
    samples = {target.name: target.sample for target in targets}
    assert samples["pauses inside speech that are cut"] == "5 of 100 pauses"
    assert samples["end of speech known after, P50 ms"] == "89 ends"


def test_what_failed_is_not_left_out() -> None:
    """Answers that did not come, an answer that nobody stopped, lost texts and a bot that fell silent meet no target,
    however good the rest is.
    """
    good: dict[str, Json] = {"p50": 1.0, "p95": 2.0}
    well: dict[str, Json] = {
        "answers": {
            "recordings": 24,
            "unanswered": 0,
            "besides_the_model_server_ms": good,
            "heard": {"recordings": 24, "without_text": 0, "unlike_what_was_said": 0},
        },
        "four speakers": {"without_text": 0, "final_text_ms": good, "end_of_speech_to_text_ms": good},
        "interruptions": {"interruptions": 8, "not_measured": 0, "silent_after_ms": good},
        "pacing": {"rooms": {"10": {"jitter_p99_ms": 0.2, "packets": 5_938, "packets_due": 6_000}}},
    }
    failed: dict[str, Json] = {
        "answers": {
            "recordings": 24,
            "unanswered": 2,
            "besides_the_model_server_ms": good,
            "heard": {"recordings": 24, "without_text": 1, "unlike_what_was_said": 1},
        },
        "four speakers": {"without_text": 1, "final_text_ms": good, "end_of_speech_to_text_ms": good},
        "interruptions": {"interruptions": 8, "not_measured": 1, "silent_after_ms": good},
        "pacing": {"rooms": {"10": {"jitter_p99_ms": 0.2, "packets": 600, "packets_due": 6_000}}},
    }
    measured = {target.name: target for target in reply_targets(well) if target.met is not None}
    assert len(measured) == 8
    assert all(target.met for target in measured.values())
    found = {target.name: target for target in reply_targets(failed)}
    assert [found[name].met for name in measured] == [False] * 8
    samples = [found[name].sample for name in measured]
    assert samples.count("seen in 22 of 24 recordings") == 2
    assert {"seen in 7 of 8 interruptions", "600 of 6,000 packets"} <= set(samples)


def test_a_bot_that_never_spoke_has_no_steady_voice() -> None:
    """Without packets there is no jitter, and that is no success."""
    rooms: dict[str, Json] = {"10": {"jitter_p99_ms": None, "packets": 0, "packets_due": 6_000}}
    [target] = [each for each in reply_targets({"pacing": {"rooms": rooms}}) if each.name.startswith("pacing")]
    assert (target.met, target.value) == (False, "not measured")


def test_nothing_measured_meets_nothing() -> None:
    """Without figures every target is neither met nor missed."""
    assert {target.met for target in reply_targets({})} == {None}


def test_a_peer_is_a_target_of_runs_with_it() -> None:
    """Beside a peer the bot may be no slower and cut no more pauses. Without a peer there is no such target."""
    ours: dict[str, Json] = {
        "answers": {"total_ms": {"p50": 700.0, "p95": 1_600.0}, "pauses_cut_share": 0.2, "unanswered": 0}
    }
    peers: dict[str, Json] = {"other": {"total_ms": {"p50": 900.0, "p95": 1_500.0}, "pauses_cut_share": 0.1}}
    beside = {each.name: each.met for each in reply_targets(ours, peers) if "beside other" in each.name}
    assert beside == {
        "end of speech to first voiced sound, P50 ms, beside other": True,
        "end of speech to first voiced sound, P95 ms, beside other": False,
        "pauses cut, beside other": False,
        "answers missing, beside other": None,
        "CPU seconds an answer, beside other": None,
    }
    assert not any("beside" in each.name for each in reply_targets(ours))


def test_answers_that_did_not_come_are_not_faster_than_a_peer_s() -> None:
    """Those that came may be the easy ones. What the peer did not answer is its own matter."""
    times: dict[str, Json] = {"p50": 700.0, "p95": 1_400.0}
    slower: dict[str, Json] = {"p50": 900.0, "p95": 1_500.0}

    def times_met(ours: int, theirs: int) -> list[bool | None]:
        found = reply_targets(
            {"answers": {"total_ms": times, "unanswered": ours}}, {"other": {"total_ms": slower, "unanswered": theirs}}
        )
        return [each.met for each in found if "first voiced sound" in each.name and "beside other" in each.name]

    assert times_met(0, 3) == [True, True]
    assert times_met(3, 3) == [False, False]
