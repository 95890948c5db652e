"""`roomtone bench memory`: what is left of an evening after 5, 20 and 100 folds, and what remembering costs.

It only arranges: evenings are made in `evenings`, heard in `race`, judged in `judge`, `finding` and `invention`;
what the reply pays and what barge-in does is measured in modules of their own.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import structlog

from benchmarks.machine import describe_machine
from benchmarks.memory.bargein import interrupt_ours
from benchmarks.memory.evenings import TemplateSet, evening
from benchmarks.memory.field import model_free
from benchmarks.memory.finding import look_for
from benchmarks.memory.options import Options, checkpoints
from benchmarks.memory.race import run_course, turns_for
from benchmarks.memory.replypath import measure_reply_path
from benchmarks.memory.retrieval import PlainWindows
from benchmarks.memory.scores import found_scores, kept, scores
from benchmarks.memory.searchspeed import measure_search
from benchmarks.report import Report, Target, at_least, at_most
from compaction.settings import CompactionSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.memory.conversation import Conversation
    from benchmarks.memory.field import Entrant
    from benchmarks.memory.finding import Found
    from benchmarks.memory.race import Course
    from benchmarks.progress import Progress
    from benchmarks.report import Json

__all__ = ["Options", "run"]

_BARGE_IN_TURNS = 300
_TOLD_AFTER = 20


@dataclass(slots=True)
class _Findings:
    ours: dict[str, Json] = field(default_factory=dict)
    peers: dict[str, Json] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


async def run(options: Options, progress: Progress) -> Report:
    """Measure everything that can be measured here. Raises BenchmarkError when the options can't be followed."""
    machine = describe_machine()
    findings = _Findings()
    with _quiet():
        async with AsyncExitStack() as stack:
            entrants = await _entrants(options, stack, findings, progress)
            for entrant in entrants:
                side = findings.ours if entrant.ours else findings.peers
                side[entrant.name] = await _race(entrant, options, progress)
        findings.ours["search"] = await _search(options, progress)
        findings.ours["search_speed"] = await measure_search(PlainWindows(), options.search_turns, progress)
        findings.ours["reply_path"] = await measure_reply_path(options.turns, CompactionSettings(), progress)
        findings.ours["barge_in"] = await _barge_in(options, progress)
    return Report(
        bench="memory",
        machine=machine,
        ours=findings.ours,
        peers=findings.peers,
        targets=_targets(findings),
        remarks=tuple(findings.remarks),
    )


async def _entrants(
    options: Options, stack: AsyncExitStack, findings: _Findings, progress: Progress
) -> tuple[Entrant, ...]:
    return model_free()


def _conversations(entrant: Entrant, options: Options, templates: TemplateSet) -> list[Conversation]:
    folds = options.model_folds if entrant.needs_model else options.folds
    count = options.model_evenings if entrant.needs_model else options.evenings
    return [evening(options.seed + each, templates, lines=turns_for(folds)) for each in range(count)]


async def _race(entrant: Entrant, options: Options, progress: Progress) -> dict[str, Json]:
    figures: dict[str, Json] = {}
    folds = checkpoints(options.model_folds if entrant.needs_model else options.folds)
    for templates in TemplateSet:
        conversations = _conversations(entrant, options, templates)
        progress.step(f"{entrant.name}, {templates}", total=sum(len(each.lines) for each in conversations))
        courses = [await _course(entrant, each, folds, progress) for each in conversations]
        figures[templates.value] = scores(courses)
    return figures


async def _course(entrant: Entrant, conversation: Conversation, folds: Sequence[int], progress: Progress) -> Course:
    async with entrant.enter(conversation.lines[0].at) as contender:
        return await run_course(contender, conversation, folds, progress, claims=entrant.claims)


async def _search(options: Options, progress: Progress) -> dict[str, Json]:
    """Look for every fact again, and count it as known when the search finds it or the summary tells it."""
    entrant = model_free()[0]
    figures: dict[str, Json] = {"retriever": PlainWindows().name, "summary_of": entrant.name}
    for templates in TemplateSet:
        found: dict[int, list[Found]] = {}
        conversations = _conversations(entrant, options, templates)
        progress.step(f"search, {templates}", total=len(conversations) * turns_for(options.folds))
        for conversation in conversations:
            course = await _course(entrant, conversation, checkpoints(options.folds), progress)
            retriever = PlainWindows()
            added = 0
            for checkpoint in course.checkpoints:
                end = turns_for(checkpoint.folds_due)
                await retriever.add(conversation.lines[added:end])
                added = end
                found.setdefault(checkpoint.folds_due, []).append(
                    await look_for(conversation, retriever, checkpoint.folds_due, checkpoint.text)
                )
        figures[templates.value] = {str(folds): found_scores(each) for folds, each in found.items()}
    return figures


async def _barge_in(options: Options, progress: Progress) -> dict[str, Json]:
    conversation = evening(options.seed, TemplateSet.TUNING, lines=_BARGE_IN_TURNS)
    progress.step("constant barge-in", total=len(conversation.lines))
    return dict(asdict(await interrupt_ours(conversation, CompactionSettings(), progress)))


# -- the targets ---------------------------------------------------------------------------------------------


def _targets(findings: _Findings) -> tuple[Target, ...]:
    ours = findings.ours
    return (
        _against_recursive(ours),
        at_least(
            "facts told or found after 20 folds, held-out templates",
            ">= 95 %",
            _number(ours, "search", TemplateSet.HELD_OUT, str(_TOLD_AFTER), "told_or_found"),
            0.95,
        ),
        at_most("invented names in our summaries", "0", _count_of(ours, "invented_names"), 0),
        at_most("budget violations", "0", _violations(ours), 0),
        at_most(
            "trigger and payload at 10,000 turns, besides tokenising, P99 ms",
            "<= 1 ms",
            _number(ours, "reply_path", "trigger_and_payload_ms", "p99"),
            1.0,
        ),
        at_most("memory search over 100,000 turns, P95 ms", "<= 50 ms", _number(ours, "search_speed", "p95_ms"), 50.0),
    )


def _against_recursive(ours: dict[str, Json]) -> Target:
    name, goal = "planted facts in the injected text after 20 folds, ledger to recursive", ">= 2 times as many"
    held_out = TemplateSet.HELD_OUT.value
    shares: list[float | None] = []
    for contender in ("ledger", "recursive"):
        figures = ours.get(contender)
        of_set = figures.get(held_out) if isinstance(figures, dict) else None
        shares.append(kept(of_set, _TOLD_AFTER) if isinstance(of_set, dict) else None)
    ledger, recursive = shares
    if ledger is None or recursive is None:
        return Target(name, goal, "not measured", None)
    if recursive == 0:
        return Target(name, goal, f"{ledger:.0%} to none", ledger > 0)
    return at_least(name, goal, ledger / recursive, 2.0)


def _number(figures: Json, *path: str) -> float | None:
    for name in path:
        figures = figures.get(name) if isinstance(figures, dict) else None
    return float(figures) if isinstance(figures, int | float) else None


def _count_of(ours: dict[str, Json], name: str) -> float:
    """Return how many there are over all of our contenders, each once."""
    found: set[str] = set()
    for figures in _of_sets(ours):
        each = figures.get(name)
        if isinstance(each, list):
            found.update(str(item) for item in each)
    return len(found)


def _violations(ours: dict[str, Json]) -> float:
    names = ("summaries_over_1200_chars", "summaries_not_ending_on_a_sentence", "payloads_over_budget")
    return sum(_number(figures, name) or 0 for figures in _of_sets(ours) for name in names)


def _of_sets(ours: dict[str, Json]) -> Iterator[dict[str, Json]]:
    for figures in ours.values():
        if isinstance(figures, dict):
            for templates in TemplateSet:
                of_set = figures.get(templates.value)
                if isinstance(of_set, dict) and "summaries" in of_set:
                    yield of_set


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop the memory's log lines while thousands of folds are measured; writing them would be measured too."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _drop(logger: object, name: str, event: object) -> str:
    del logger, name, event
    raise structlog.DropEvent
