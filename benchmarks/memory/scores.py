"""What a contender's courses come to: shares over all conversations of a kind, as the report has them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.figures import part_of, part_of_sum, percentile
from benchmarks.memory.finding import Found
from benchmarks.memory.race import summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.memory.judge import Tally
    from benchmarks.memory.people import Recall
    from benchmarks.memory.race import Checkpoint, Course
    from benchmarks.report import Json


_EXAMPLE_CHARS = 1_200


def scores(courses: Sequence[Course]) -> dict[str, Json]:
    """Return one contender's figures over several conversations of one kind."""
    by_folds: dict[int, list[Checkpoint]] = defaultdict(list)
    for course in courses:
        for checkpoint in course.checkpoints:
            by_folds[checkpoint.folds_due].append(checkpoint)
    names = sorted(set().union(*(course.invented_names for course in courses)))
    numbers = sorted(set().union(*(course.invented_numbers for course in courses)))
    return {
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
        "example": courses[0].checkpoints[-1].text[:_EXAMPLE_CHARS] if courses and courses[0].checkpoints else "",
    }


def kept(figures: dict[str, Json], folds: int) -> float | None:
    """Return the share of facts in the injected text after so many folds, or None when that wasn't reached."""
    after = figures.get("after_folds")
    at = after.get(str(folds)) if isinstance(after, dict) else None
    share = at.get("kept") if isinstance(at, dict) else None
    return float(share) if isinstance(share, int | float) else None


def found_scores(found: Iterable[Found]) -> dict[str, Json]:
    """Return what the search found, over several conversations."""
    total = Found(0, 0, 0, 0, 0)
    for each in found:
        total += each
    return {
        "facts": total.facts,
        "found": part_of(total.found, total.facts),
        "told_or_found": part_of(total.with_summary, total.facts),
        "corrected": total.corrected,
        "old_value_first": part_of(total.old_first, total.corrected),
    }


def recall_scores(recall: Recall, *, searched: bool) -> dict[str, Json]:
    """Return what is left of what people thought worth telling. `searched`: a search was asked too."""
    figures: dict[str, Json] = {
        "entities_of_summaries": part_of(recall.entities, recall.entities_due),
        "entities_due": recall.entities_due,
        "questions": recall.questions,
        "answer_words_in_injected": part_of_sum(recall.answer_words, recall.questions),
    }
    if searched:
        figures["answer_words_found"] = part_of_sum(recall.answer_words_found, recall.questions)
        figures["evidence_in_first_ten"] = part_of(recall.evidence_found, recall.questions)
    return figures


def _at(checkpoints: Sequence[Checkpoint]) -> dict[str, Json]:
    injected = summed(each.injected for each in checkpoints)
    stored = [each.stored for each in checkpoints if each.stored is not None]
    lengths = [each.raw_chars for each in checkpoints]
    figures: dict[str, Json] = {
        "folds": [each.folds for each in checkpoints],
        **_tally(injected),
        "entities": part_of(sum(each.entities for each in checkpoints), sum(each.entities_due for each in checkpoints)),
        "chars": max(lengths, default=0),
    }
    if stored:
        total = summed(stored)
        figures["in_segments"] = part_of(total.kept, total.facts)
        figures["stale_unmarked_in_segments"] = part_of(total.stale, total.corrected)
    return figures


def _tally(tally: Tally) -> dict[str, Json]:
    return {
        "facts": tally.facts,
        "kept": part_of(tally.kept, tally.facts),
        "corrected": tally.corrected,
        "stale": part_of(tally.stale, tally.corrected),
        "speaker_right": part_of(tally.attributed_right, tally.kept),
        "speaker_wrong": part_of(tally.attributed_wrong, tally.kept),
    }


def _cost(courses: Sequence[Course]) -> dict[str, Json]:
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
