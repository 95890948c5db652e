"""Tables of the memory benchmark's parts, each with its sample, and each only if it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.tables import barge_in_table, people_tables, search_tables, summary_tables
from benchmarks.result_section import result_section
from tests.benchmarks.test_document import REPORT

if TYPE_CHECKING:
    from benchmarks.report import Json

NOTHING: dict[str, Json] = {"facts": 0, "found": None, "old_value_first": None, "corrected": 0}
NO_NAMES: dict[str, Json] = {"entities_due": 0, "first_third": None, "questions": 664}
SEARCHED: dict[str, Json] = {
    "held_out": {
        "20": NOTHING,
        "100": {"facts": 242, "found": 0.9, "told_or_found": 0.95, "corrected": 62, "old_value_first": 0.25},
    },
    "written": {"26": NOTHING},
    "LoCoMo": {
        "31": NOTHING,
        "people": {**NO_NAMES, "evidence_in_first_ten": 0.8, "evidence_turns_in_first_ten": 0.7},
    },
}


def test_a_search_is_told_by_planted_facts_and_by_questions_with_evidence() -> None:
    """Planted facts are told after the most folds, and people's questions where their evidence is known. Sets without
    either are left out, as are names in people's summaries of which none is due.
    """
    report: dict[str, Json] = {"ours": {"search: own": SEARCHED}, "peers": {"search: plain": {"LoCoMo": {}}}}
    page = "\n".join(search_tables(report))
    assert "| `held_out` | own | 100 | 242 | 62 | 90% | 95% | 25% |" in page
    assert "| LoCoMo | own | 664 | 80% | 70% |" in page
    assert "written" not in page
    assert "plain" not in page
    assert "tokens" not in page
    assert list(people_tables(report)) == []


def test_a_window_beside_peoples_summaries_is_told_to_be_whole() -> None:
    """The last turns are judged by all of their text, so their row says so."""
    people: Json = {"people": {"entities_due": 195, "entities_of_summaries": 0.5, "first_third": 0.25}}
    report: dict[str, Json] = {"ours": {"extractive": {"QMSum": people}}, "peers": {"last 50 turns": {"QMSum": people}}}
    page = "\n".join(people_tables(report))
    assert "| extractive | 195 | 50% | 25% |" in page
    assert "| last 50 turns, whole | 195 | 50% | 25% |" in page


def test_quotes_in_prompts_are_told_with_their_conversations() -> None:
    """Conversations as they were and with planted facts are rows of their own."""
    figures: dict[str, Json] = {
        "conversations": 8,
        "questions": 127,
        "answered": 0.9843,
        "tokens_mean": 260.9,
        "tokens_most": 377,
    }
    report: dict[str, Json] = {"ours": {"quotes in prompts: full text": {"CRD3, planted": figures}}}
    page = "\n".join(search_tables(report))
    assert "| CRD3, planted | full text | 8 | 127 | 98% | 261 | 377 |" in page
    assert "evidence" not in page


def test_constant_interruptions_are_told_beside_libraries() -> None:
    """Roomtone and each library are rows; a library that failed has none."""
    report: dict[str, Json] = {
        "ours": {"barge_in": {"turns": 300, "asked": 26, "applied": 25, "behind": 0}},
        "peers": {
            "barge_in pipecat": {"turns": 300, "asked": 9, "applied": 0, "behind": 239, "version": "pipecat-ai 1"},
            "barge_in langchain": {"failed": "It would not install."},
        },
    }
    page = "\n".join(barge_in_table(report))
    assert "| Roomtone | 300 | 26 | 25 | 0 |\n| pipecat (pipecat-ai 1) | 300 | 9 | 0 | 239 |" in page
    assert "langchain" not in page


def test_conversations_without_labelled_facts_share_a_table() -> None:
    """Of these only what was made counts: a row for each system that made summaries, with how many conversations."""
    made: dict[str, Json] = {
        "conversations": 35,
        "after_folds": {"5": {"facts": 0}, "100": {"facts": 0}},
        "invented_names": ["Max"],
        "summaries": 1714,
        "cost": {"fold_p50_s": 0.016},
    }
    report: dict[str, Json] = {
        "ours": {"extractive": {"QMSum": made}},
        "peers": {"last 50 turns": {"QMSum": {**made, "summaries": 0}}},
    }
    page = "\n".join(summary_tables(report))
    assert "| QMSum | 35 | extractive | 1714 | 1 | 0.016 |" in page
    assert "last 50 turns" not in page
    assert "Conversations of QMSum" not in page


def test_parts_of_one_result_have_headings() -> None:
    """A result of several parts has a heading for each; one of a single part has none."""
    ours = REPORT["ours"]
    assert isinstance(ours, dict)
    both: dict[str, Json] = {**REPORT, "ours": {**ours, "search: own": SEARCHED}}
    assert "####" not in "\n".join(result_section("memory.json", REPORT, []))
    page = "\n".join(result_section("memory.json", both, []))
    search, summaries = page.index("#### Memory search"), page.index("#### What summaries keep")
    assert page.index("The language model was a small one.") < search < summaries
