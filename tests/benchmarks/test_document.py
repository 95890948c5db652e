"""The results in the documentation are those of the kept files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.document import (
    BEGIN,
    CLUSTER,
    END,
    PAGE,
    README,
    kept_results,
    update_cluster,
    update_page,
    update_readme,
)

if TYPE_CHECKING:
    from benchmarks.report import Json

REPORT: dict[str, Json] = {
    "bench": "memory",
    "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 24.7, "python": "3.11.7", "load_1m": 0.5},
    "ours": {
        "ledger": {
            "held_out": {
                "after_folds": {
                    "5": {"facts": 3, "kept": 1.0, "stale": None},
                    "20": {"facts": 9, "kept": 0.8889, "stale": 0.5, "speaker_right": 1.0, "entities": 0.9444},
                },
                "invented_names": [],
                "invented_numbers": ["17"],
                "cost": {"fold_p50_s": 21.088},
            }
        }
    },
    "peers": {"langchain": {"held_out": {"after_folds": {"20": {"facts": 9, "kept": 0.1}}, "version": "1.4.7"}}},
    "targets": [
        {"name": "facts", "goal": ">= 2", "value": 2.25, "met": True},
        {"name": "time", "goal": "<= 1 ms", "value": 4.0, "met": False},
        {"name": "long time", "goal": "<= 1.5 s", "value": 1234.04, "met": True},
        {"name": "other", "goal": "0", "value": "not measured", "met": None},
    ],
    "remarks": ["The language model was a small one."],
}


def test_a_result_is_told_in_tables() -> None:
    """A result is written as tables of targets, systems and remarks. It replaces only the text between the marks."""
    page = update_page(f"Before.\n{BEGIN}\nwritten before\n{END}\nAfter.\n", {"memory.json": REPORT})
    assert page.startswith(f"Before.\n{BEGIN}\n\n### What is not met\n\n")
    assert "\n### memory.json\n\n[All figures](benchmarks/memory.json). " in page
    assert "\n- The language model was a small one.\n\nEvenings of" in page
    assert page.endswith(f"| 0 | - |\n\n{END}\nAfter.\n")
    assert "written before" not in page
    for line in (
        "Some CPU, 2 cores, 24.7 GB, Python 3.11.7; load of the machine at the start 0.5.",
        "| facts | >= 2 | 2.25 | met |",
        "| time | <= 1 ms | 4 | **not met** |",
        "| long time | <= 1.5 s | 1,234 | met |",
        "| other | 0 | not measured | not measured |",
        "Evenings of the set `held_out`:",
        "| ledger | 5 | 3 | 100% | - | - | - | - | - |  |  |",
        "|  | 20 | 9 | 89% | 50% | 100% | 94% | - | - | 1 | 21.1 |",
        "| langchain (1.4.7) | 20 | 9 | 10% | - | - | - | - | - | 0 | - |",
    ):
        assert line in page
    assert update_page(page, {"memory.json": REPORT}) == page


def test_a_target_that_was_not_measured_is_told_once() -> None:
    """Files that are parts of one benchmark leave out what they did not measure, if another did or has said so."""
    part: dict[str, Json] = {
        **REPORT,
        "targets": [{"name": "facts", "goal": ">= 2", "value": "not measured", "met": None}],
    }
    other: dict[str, Json] = {
        **REPORT,
        "targets": [{"name": "other", "goal": "0", "value": "not measured", "met": None}],
    }
    results = {"memory.json": REPORT, "memory-part.json": part, "memory-some.json": other}
    page = update_page(f"{BEGIN}\n{END}\n", results)
    assert page.count("| other | 0 | not measured | not measured |") == 1
    assert page.count("| facts | >= 2") == 1
    assert "| facts | >= 2 | 2.25 | met |" in page


def test_every_missed_target_is_in_one_list() -> None:
    """What is not met, or was measured and is not decided, stands together, with the file; what is met or was not
    measured does not.
    """
    undecided: Json = {"name": "growth", "goal": "<= 4 MB", "value": 3.9, "met": None, "sample": "44 samples"}
    targets = REPORT["targets"]
    assert isinstance(targets, list)
    page = update_page(f"{BEGIN}\n{END}\n", {"memory.json": {**REPORT, "targets": [*targets, undecided]}})
    listed = page.partition("### What is not met")[2].partition("### memory.json")[0]
    assert "| time | <= 1 ms | 4 | **not met** |  | `memory` |" in listed
    assert "| growth | <= 4 MB | 3.9 | not decided | 44 samples | `memory` |" in listed
    assert "long time" not in listed
    assert "not measured" not in listed


def test_a_page_without_its_marks_is_left_alone() -> None:
    """A page without the marks raises an error and is not changed."""
    with pytest.raises(ValueError, match="lacks"):
        update_page("Nothing.", {})


def test_documentation_tells_what_the_files_tell() -> None:
    """The documentation agrees with the result files. Run `python -m benchmarks.document` after keeping a
    new result.
    """
    page = PAGE.read_text("utf-8")
    told = {name: report for name, report in kept_results().items() if f"### {name}\n" in page}
    assert told
    assert update_page(page, told) == page
    readme = README.read_text("utf-8")
    assert update_readme(readme, kept_results()) == readme
    cluster = CLUSTER.read_text("utf-8")
    assert update_cluster(cluster, kept_results()) == cluster
