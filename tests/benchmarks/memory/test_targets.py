"""Comparing the results with the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.memory.targets import BUDGET_VIOLATIONS, INVENTED_NAMES, memory_targets

if TYPE_CHECKING:
    from benchmarks.report import Json


def contender(share: float, *, names: tuple[str, ...] = (), over: int = 0) -> dict[str, Json]:
    """Return a memory system's figures on the held-out evenings."""
    of_set: dict[str, Json] = {
        "after_folds": {"20": {"kept": share}},
        "summaries": 20,
        "invented_names": list(names),
        "summaries_over_1200_chars": over,
        "summaries_not_ending_on_a_sentence": 0,
        "payloads_over_budget": 0,
    }
    return {"held_out": of_set}


def test_whole_run_meets_or_misses_each_target() -> None:
    """In a complete run every target has a value and is met or missed."""
    ours: dict[str, Json] = {
        "ledger": contender(0.8, names=("Max",)),
        "recursive": contender(0.5, over=2),
        "search: words": {"held_out": {"20": {"told_or_found": 0.9}}},
        "search: words and meaning": {"held_out": {"20": {"told_or_found": 0.97}}},
        "reply_path": {"trigger_and_payload_ms": {"p99": 0.8}},
        "search_speed": {"p95_ms": 40.0},
        "search_speed_with_embeddings": {"p95_ms": 60.0},
    }
    targets = memory_targets(ours)[-5:]
    assert [target.met for target in targets] == [True, False, False, True, False]
    assert [target.value for target in targets] == [0.97, 1, 2, 0.8, 60.0]


def test_search_is_compared_with_plain_search() -> None:
    """Evidence and outdated values are those of the most complete search, and plain search is the measure."""
    ours: dict[str, Json] = {
        "search: words": {"LoCoMo": {"people": {"questions": 70, "evidence_in_first_ten": 0.2}}},
        "search: words and meaning": {
            "LoCoMo": {"people": {"questions": 70, "evidence_in_first_ten": 0.8, "evidence_turns_in_first_ten": 0.7}},
            "held_out": {"100": {"corrected": 62, "old_value_first": 0.4194}},
        },
        "quotes in prompts: full text and meaning": {
            "CRD3, planted": {
                "questions": 60,
                "answered": 0.96,
                "corrected": 20,
                "stale_first": 0.1,
                "stale_alone": 0.0,
            }
        },
    }
    peers: dict[str, Json] = {
        "search: plain": {"LoCoMo": {"people": {"evidence_in_first_ten": 0.7, "evidence_turns_in_first_ten": 0.7}}}
    }
    met = {each.name: (each.met, each.value, each.sample) for each in memory_targets(ours, peers)}
    assert met["questions with evidence among the first ten, LoCoMo"] == (True, 0.8, "70 questions")
    assert met["questions with evidence among the first ten, beyond plain BM25, LoCoMo"] == (True, 0.1, "70 questions")
    assert met["evidence turns among the first ten, LoCoMo"] == (False, 0.7, "70 questions")
    assert met["evidence turns among the first ten, beyond plain BM25, LoCoMo"] == (False, 0.0, "70 questions")
    outdated = "an outdated value first in the search after 100 folds, held-out templates"
    assert met[outdated] == (False, 0.4194, "62 corrected facts")
    assert met["an outdated answer first among the quotes"] == (False, 0.1, "seen in 20 corrected facts")
    assert met["answers among the quotes of a prompt, planted facts"] == (True, 0.96, "60 questions")
    assert met["only an outdated answer among the quotes"] == (True, 0.0, "60 questions")


def test_recorded_answers_are_judged_with_their_sample() -> None:
    """Each row of the measures names what was counted."""
    text: dict[str, Json] = {"kept": 0.95, "speaker_right": 1.0, "facts": 61, "small_talk": 0.2}
    written: dict[str, Json] = {
        "answer_facts": {"facts": 100, "kept": 96, "altered": 1, "superseded_by_code": 0},
        "after_folds": {"20": {"kept": 0.1}, "26": text},
    }
    met = {
        each.name: (each.met, each.sample)
        for each in memory_targets({"roomtone, recorded answers": {"written": written}})
    }
    assert met["facts of a strong model's answers that are kept"] == (True, "100 facts, recorded answers")
    assert met["facts of a strong model's answers altered"] == (False, "100 facts, recorded answers")
    assert met["labelled facts in the text at the end, of the right person"] == (True, "61 facts, recorded answers")
    assert met["small talk in the text"] == (False, "61 facts, recorded answers")
    assert met["lasting facts in the text after 100 folds"] == (None, "")


def test_the_text_by_code_has_targets_for_small_talk_in_both_halves() -> None:
    """The half that rules were tuned on does not stand for the one kept apart."""
    cases: dict[str, Json] = {
        "small talk, tuned": {"lines": 50, "share": 0.02},
        "small talk, apart": {"lines": 60, "share": 0.4949},
    }
    met = {each.name: (each.met, each.value, each.sample) for each in memory_targets({"cases: extractive": cases})}
    row, unit = "small talk in the text of the table, {} half, extractive", "lines of small talk in one talk"
    assert met[row.format("tuned")] == (True, 0.02, f"50 {unit}")
    assert met[row.format("apart")] == (False, 0.4949, f"60 {unit}")


def test_several_verdicts_on_a_pair_are_no_more_pairs() -> None:
    """The sample of the blind comparison is its pairs; each has several judges."""
    blind: dict[str, Json] = {"pairs": 26, "verdicts": 78, "share": 0.4615}
    [target] = [each for each in memory_targets({"blind": blind}) if each.name.startswith("blind")]
    assert (target.met, target.sample) == (False, "seen in 26 pairs, 3 judges each, recorded answers")


def test_a_run_without_summaries_tells_nothing_about_them() -> None:
    """Where no summary was made, none was free of inventions, and no limit was kept."""
    ours: dict[str, Json] = {"search_speed": {"p95_ms": 40.0}, "search: words": {"held_out": {"20": {"facts": 9}}}}
    found = {target.name: target for target in memory_targets(ours)}
    for name in (INVENTED_NAMES, BUDGET_VIOLATIONS):
        assert (found[name].met, found[name].value) == (None, "not measured")


def test_a_payload_that_could_not_be_made_is_a_violation() -> None:
    """A memory that refuses every budget keeps none."""
    figures = contender(0.8)
    assert isinstance(figures["held_out"], dict)
    figures["held_out"]["payloads_refused"] = 4
    found = {target.name: target for target in memory_targets({"ledger": figures})}
    assert (found[BUDGET_VIOLATIONS].met, found[BUDGET_VIOLATIONS].value) == (False, 4)


def test_run_without_a_model_says_what_it_could_not_measure() -> None:
    """A target that was not measured is not missed."""
    targets = memory_targets({})
    assert targets[0].met is None
    assert targets[1].met is None
