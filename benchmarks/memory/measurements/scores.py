"""Converts the results of a system into figures for the report: shares over all conversations of one kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from benchmarks.memory.measurements.evaluation import sum_tallies
from benchmarks.memory.search.fact_retrieval import FoundFacts
from benchmarks.stats import mean_of_sum, percentile, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.memory.judges.fact_judge import FactTally
    from benchmarks.memory.measurements.evaluation import Checkpoint, EvaluationRun
    from benchmarks.memory.search.human_reference import ReferenceRecall
    from benchmarks.report import Json


_EXAMPLE_CHARS = 1_200


def scores(courses: Sequence[EvaluationRun], *, quotes: bool = True) -> dict[str, Json]:
    """Return the figures of one system over several conversations of one kind. `quotes`: with a summary as an example,
    which conversations that the user brought must not have: they are not ours to print.
    """
    by_folds: dict[int, list[Checkpoint]] = defaultdict(list)
    for course in courses:
        for checkpoint in course.checkpoints:
            by_folds[checkpoint.folds_due].append(checkpoint)
    names = sorted(set().union(*(course.invented_names for course in courses)))
    numbers = sorted(set().union(*(course.invented_numbers for course in courses)))
    figures: dict[str, Json] = {
        "conversations": len(courses),
        "after_folds": {str(folds): _at(checkpoints) for folds, checkpoints in sorted(by_folds.items())},
        "invented_names": list(names),
        "invented_numbers": list(numbers),
        "summaries": sum(course.summaries for course in courses),
        "summaries_over_1200_chars": sum(course.overlong for course in courses),
        "summaries_not_ending_on_a_sentence": sum(course.unfinished for course in courses),
        "payloads": sum(course.payloads for course in courses),
        "payloads_over_budget": sum(course.payloads_over_budget for course in courses),
        "payloads_refused": sum(course.payloads_refused for course in courses),
        "cost": _cost(courses),
        "paragraph_made_by": dict(sum((course.makers for course in courses), Counter())),
    }
    if quotes and courses and courses[0].checkpoints:
        figures["example"] = courses[0].checkpoints[-1].text[:_EXAMPLE_CHARS]
    return figures


def found_scores(found: Iterable[FoundFacts]) -> dict[str, Json]:
    """Return the search figures over several conversations."""
    total = FoundFacts(0, 0, 0, 0, 0)
    for each in found:
        total += each
    return {
        "facts": total.facts,
        "found": share_of(total.found, total.facts),
        "told_or_found": share_of(total.with_summary, total.facts),
        "corrected": total.corrected,
        "old_value_first": share_of(total.old_first, total.corrected),
    }


def recall_scores(recall: ReferenceRecall, *, searched: bool) -> dict[str, Json]:
    """Return the figures of the comparison with people's summaries. `searched`: include the figures of the search."""
    figures: dict[str, Json] = {
        "entities_of_summaries": share_of(recall.entities, recall.entities_due),
        "entities_due": recall.entities_due,
        **{
            f"{name}_third": share_of(*third)
            for name, third in zip(("first", "second", "last"), recall.thirds, strict=True)
        },
        "questions": recall.questions,
        "answer_words_in_injected": mean_of_sum(recall.answer_words, recall.questions),
    }
    if searched:
        figures["answer_words_found"] = mean_of_sum(recall.answer_words_found, recall.questions)
        figures["evidence_in_first_ten"] = share_of(recall.evidence_found, recall.questions)
        figures["evidence_turns_in_first_ten"] = share_of(recall.evidence_share, recall.questions)
    return figures


def _at(checkpoints: Sequence[Checkpoint]) -> dict[str, Json]:
    injected = sum_tallies(each.injected for each in checkpoints)
    stored = [each.stored for each in checkpoints if each.stored is not None]
    lengths = [each.raw_chars for each in checkpoints]
    figures: dict[str, Json] = {
        "folds": [each.folds for each in checkpoints],
        **_tally(injected),
        "entities": share_of(
            sum(each.entities for each in checkpoints), sum(each.entities_due for each in checkpoints)
        ),
        "chars": max(lengths, default=0),
    }
    chatter = [each.chatter_chars for each in checkpoints if each.chatter_chars is not None]
    if chatter:
        figures["small_talk"] = share_of(sum(chatter), sum(len(each.text) for each in checkpoints))
    if stored:
        total = sum_tallies(stored)
        figures["in_segments"] = share_of(total.kept, total.facts)
        figures["stale_unmarked_in_segments"] = share_of(total.stale, total.corrected)
    return figures


def _tally(tally: FactTally) -> dict[str, Json]:
    return {
        "facts": tally.facts,
        "kept": share_of(tally.kept, tally.facts),
        "corrected": tally.corrected,
        "stale": share_of(tally.stale, tally.corrected),
        "speaker_right": share_of(tally.attributed_right, tally.kept),
        "speaker_wrong": share_of(tally.attributed_wrong, tally.kept),
    }


def _cost(courses: Sequence[EvaluationRun]) -> dict[str, Json]:
    costs = [course.cost for course in courses if course.cost is not None]
    seconds = [second for cost in costs for second in cost.fold_s]
    return {
        "folds": len(seconds),
        "failures": sum(cost.failures for cost in costs),
        "degraded": sum(cost.degraded for cost in costs),
        "prompt_tokens": sum(cost.prompt_tokens for cost in costs),
        "completion_tokens": sum(cost.completion_tokens for cost in costs),
        "fold_p50_s": round(percentile(seconds, 0.5), 3) if seconds else None,
        "fold_p95_s": round(percentile(seconds, 0.95), 3) if seconds else None,
    }
