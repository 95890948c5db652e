"""Targets are judged by the figures that they name, and what was not measured is neither met nor missed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.asr.bench import asr_targets
from benchmarks.cluster.bench import cluster_targets, sizes
from benchmarks.figures import counted_of, cut_sample, number_at, sample_at
from benchmarks.listen.decisions import deciding_targets, unasked_targets
from benchmarks.listen.endpointing import endpointing_targets
from benchmarks.load.bench import load_targets
from benchmarks.memory.bench import memory_targets
from benchmarks.reply.bench import reply_targets
from benchmarks.report import Json, Target, at_least, at_most

FIGURES: dict[str, Json] = {"answers": {"total_ms": {"p50": 480}, "who": "Ada", "whole": True}}


@pytest.mark.parametrize(
    ("path", "number"),
    [
        (("answers", "total_ms", "p50"), 480.0),
        (("answers", "total_ms", "p95"), None),
        (("answers", "total_ms"), None),
        (("answers", "who", "p50"), None),
        (("answers", "whole"), None),
        ((), None),
    ],
)
def test_a_number_or_none(path: tuple[str, ...], number: float | None) -> None:
    """Only a number at the path counts as measured."""
    assert number_at(FIGURES, *path) == number


def test_a_sample_says_what_was_counted() -> None:
    """What was not counted has no sample, and few cases are told as such."""
    counted: dict[str, Json] = {"receive": {"sent": 30_500}, "pauses": {"cut": 10, "pauses_inside": 146}}
    assert sample_at(counted, "frames", "receive", "sent") == "30,500 frames"
    assert cut_sample(counted, "pauses") == "10 of 146 pauses"
    assert counted_of({"said": 8}, "answers", ("said",), 1) == "seen in 7 of 8 answers"
    assert sample_at(counted, "frames", "receive", "lost") == cut_sample(counted, "receive") == ""


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (at_least("share", ">= 95 %", 0.95, 0.95), True),
        (at_least("share", ">= 95 %", 0.9499, 0.95), False),
        (at_most("time", "<= 1 ms", 1.0, 1.0), True),
        (at_most("time", "<= 1 ms", 1.0001, 1.0), False),
        (at_most("time", "<= 1 ms", 0.5, 1.0, failed=1), False),
        (at_most("time", "<= 1 ms", None, 1.0, failed=8), False),
        (at_least("share", ">= 95 %", None, 0.95), None),
    ],
)
def test_a_target_is_met_at_its_very_goal(target: Target, *, met: bool | None) -> None:
    """A failure misses the target of the others, because it has no value."""
    assert target.met is met


@pytest.mark.parametrize(
    "targets",
    [
        reply_targets,
        asr_targets,
        memory_targets,
        load_targets,
        cluster_targets,
        endpointing_targets,
        deciding_targets,
        unasked_targets,
    ],
)
def test_nothing_measured_claims_nothing(targets: Callable[[dict[str, Json]], tuple[Target, ...]]) -> None:
    """Every target of a run that measured nothing says so."""
    assert {target.met for target in targets({})} == {None}


def test_an_answer_waits_for_its_text_as_long_as_the_recogniser_takes() -> None:
    """The stage is judged whether or not the text was asked for in the pause; an answer that never came misses it."""
    answers: dict[str, Json] = {"recordings": 60, "unanswered": 0, "stages_ms": {"recogniser": {"p95": 599.0}}}
    assert [each.met for each in reply_targets({"answers": answers})].count(True) == 1
    late: dict[str, Json] = {**answers, "stages_ms": {"recogniser": {"p95": 601.0}}}
    silent: dict[str, Json] = {**answers, "unanswered": 1}
    for figures in (late, silent):
        assert True not in {each.met for each in reply_targets({"answers": figures})}


@pytest.mark.parametrize(("rate", "met"), [(0.08, True), (0.081, False)])
def test_recordings_have_a_word_error_rate_to_reach(rate: float, *, met: bool) -> None:
    """It is that of the recordings alone, of which the sample tells how many."""
    (judged,) = (
        each for each in asr_targets({"alone": {"word_error_rate": rate, "recordings": 89}}) if each.met is not None
    )
    assert (judged.met, judged.sample) == (met, "89 recordings")


def test_load_is_judged_by_its_own_figures() -> None:
    """A lag without recognitions beside it is no measurement, one more file is a leak, and a late text is missed."""
    grown: dict[str, Json] = {"rss_mb": 1.0, "threads": 0.0, "files": 1.0, "tasks": 0.0}
    bot: dict[str, Json] = {"lost": 0, "sent": 60_000, "loop_lag": {"p99_ms": 21.0}, "texts": 40}
    ours: dict[str, Json] = {
        "receive": {
            "100 speakers": {"lost": 0, "sent": 30_000, "core": 0.19},
            "200 speakers in step": {"lost": 1, "sent": 60_000},
        },
        "whole bot": {"100 speakers": bot},
        "2 rooms": {"end_to_text_ms": {"count": 60, "p95": 1000.1}},
        "1,000 joins": {"growth": grown},
    }
    judged = [each.met for each in load_targets(ours)]
    assert judged == [True, True, False, False, True, False, True, True, False, True]
    silent: dict[str, Json] = {"whole bot": {"100 speakers": {**bot, "texts": 0}}}
    assert load_targets(silent)[3].met is None


@pytest.mark.covers("3.12")
@pytest.mark.parametrize(("more", "met"), [(0.0, [True, True, True]), (0.1, [False, False, False])])
def test_tiers_and_search_have_the_times_of_spec_3(more: float, met: list[bool]) -> None:
    """A check may take 50 ms, pruning 100 ms. Search has a quarter of the 200 ms that are asked for."""
    check, prune, search = ({"p95": most + more} for most in (50.0, 100.0, 50.0))
    tiers: Json = {"check": {"cpu_ms": {**check}}, "prune": {"cpu_ms": {**prune}}}
    judged = memory_targets({"tiers": tiers, "speed": {"ms": {**search}}})
    assert [each.met for each in judged if each.met is not None] == met


def test_one_unasked_reply_misses_the_target() -> None:
    """The goal is none at all."""
    first, _ = unasked_targets({"unasked": {"whole turns": {"spoken_unasked": 1, "minutes": 90.0}}})
    assert (first.met, first.sample) == (False, "90 minutes")


def test_sizes_are_the_figures_of_a_cluster_multiplied() -> None:
    """The dearest service and the largest bot count. A further room takes what six take more than one."""
    bot: dict[str, Json] = {"cpu_s_a_silent_s": 0.02, "cpu_s_a_speech_s": 0.04}
    ours: dict[str, Json] = {
        "cluster": {"memory_mb_a_recogniser": 200, "memory_mb_of_the_head": 800},
        "1 recogniser, 2 at once": {"cpu_s_a_speech_s": 0.04},
        "1 recogniser, 6 at once": {"cpu_s_a_speech_s": 0.05},
        "a bot with 1 room": {"rooms": 1, "memory_mb": 500, "cpu_s_a_silent_s": 0.01, "cpu_s_a_speech_s": 0.02},
        "a bot with 6 rooms": {"rooms": 6, "memory_mb": 600, **bot},
    }
    assert sizes(ours)["100 rooms"] == {"bots": 8, "cores_of_recognisers": 8, "memory_gb": 7.4}
    assert sizes({name: each for name, each in ours.items() if name != "cluster"}) == {}
