"""A stored result is told in tables, of which each appears only if its figures were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.result_section import result_section
from tests.benchmarks.test_document import REPORT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report import Json


def section(report: Mapping[str, Json]) -> str:
    """Return the section of a report."""
    return "\n".join(result_section("some.json", report, []))


def test_answers_beside_a_pipeline_are_a_table() -> None:
    """Answers beside those of another pipeline are rows of one table. Without another pipeline there is none."""
    measured: dict[str, Json] = {
        "recordings": 40,
        "total_ms": {"p50": 512.0, "mean": 640.0, "p95": 1_034.0},
        "pauses_cut": 3,
        "pauses_inside": 50,
        "unanswered": 0,
        "cpu_s_an_answer": 1.25,
    }
    report: dict[str, Json] = {**REPORT, "bench": "reply", "ours": {"answers": measured}, "peers": {}}
    assert "| Roomtone |" not in section(report)
    beside: dict[str, Json] = {**report, "peers": {"pipecat": {**measured, "version": "pipecat-ai 1", "unanswered": 2}}}
    page = section(beside)
    assert "| Roomtone | 40 | 512 | 640 | 1,034 | 3 of 50 | 0 | 1.25 |" in page
    assert "| pipecat (pipecat-ai 1) | 40 | 512 | 640 | 1,034 | 3 of 50 | 2 | 1.25 |" in page


def test_pools_of_recognisers_are_a_table() -> None:
    """Each size of the pool is a row; what is no pool is none."""
    pool: dict[str, Json] = {
        "utterance_ms": {"p50": 210.0, "p95": 480.5},
        "speech_s_a_s": 18.25,
        "recognisers_cpu_s_a_speech_s": 0.0512,
        "whole_cluster_cpu_s_a_speech_s": 0.0634,
    }
    report: dict[str, Json] = {
        **REPORT,
        "bench": "cluster",
        "ours": {"cluster": {"ready_s": 9.5}, "1 recogniser": pool},
    }
    page = section(report)
    assert "| 1 recogniser | 210 | 480 | 18.2 | 0.0512 | 0.0634 |" in page
    assert "| cluster |" not in page


def test_rooms_and_faults_are_tables() -> None:
    """A run of rooms is a row with its drain; a fault's row has the times of all its rooms and the sentences lost."""
    run: dict[str, Json] = {
        "rooms": 6,
        "rooms_each": 3,
        "own_memory_mb_a_room": 177,
        "rooms_that_left": 3,
        "drain_s": 4.9,
    }
    cluster: dict[str, Json] = {**REPORT, "bench": "cluster", "ours": {"6 rooms, 3 a process": run}}
    hung: dict[str, Json] = {
        "hears_after_s": [4.57, 4.38],
        "heard_again_s": [6.94, 4.93],
        "sentences_lost": ["room 1, take 218"],
    }
    calm: dict[str, Json] = {"hears_after_s": [], "heard_again_s": [], "sentences_lost": []}
    faults: dict[str, Json] = {**REPORT, "bench": "cluster-faults", "ours": {"calm": [calm], "frozen": [hung]}}
    page = section(cluster) + section(faults)
    assert "| 6 | 3 | 177 | 3 | 4.9 |" in page
    assert "| frozen | seen once | 4.6, 4.4 | 6.9, 4.9 |  | room 1, take 218 |" in page
    assert "| calm |" not in page
