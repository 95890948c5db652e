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


def test_each_time_of_a_fault_is_a_row() -> None:
    """A row has the times of all rooms that the fault concerned, what was not stored, and the sentences lost."""
    hung: dict[str, Json] = {
        "hears_after_s": [4.57, 4.38],
        "missing_s": [0.4],
        "sentences_lost": ["room 1, take 218"],
    }
    whole: dict[str, Json] = {"hears_after_s": [3.0], "missing_s": [], "sentences_lost": []}
    page = section({**REPORT, "bench": "cluster-faults", "ours": {"frozen": [hung, whole]}})
    assert "| frozen | 4.6, 4.4 | 0.4 | room 1, take 218 |" in page
    assert "| frozen | 3.0 |  | none |" in page
