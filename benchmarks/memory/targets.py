"""The targets of the memory benchmark, checked against its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.memory.recorded_answers import MODEL
from benchmarks.memory.synthetic_evenings import TemplateSet
from benchmarks.report import Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.report import Json

_TOLD_AFTER = 20
_ANSWERED = f"roomtone, {MODEL}"
# Supplied conversations with people's summaries.
_PEOPLE = ("CRD3", "QMSum")


@dataclass(frozen=True, slots=True)
class _Row:
    """One target whose value is a figure at `path`. `counted`: the path of its sample size. `last` in a path: the last
    entry.
    """

    name: str
    goal: str
    limit: float
    path: tuple[str, ...]
    counted: tuple[str, ...] = ()
    unit: str = "facts"
    least: bool = True
    model: str = MODEL


_FACTS = (_ANSWERED, "written", "answer_facts")
_TEXT = (_ANSWERED, "written", "after_folds", "last")
_HUNDRED = (_ANSWERED, "written, long", "lasting", "100")
_END = (_ANSWERED, "written", "lasting", "last")
_ROWS = (
    _Row("facts of a strong model's answers altered", "0", 0, (*_FACTS, "altered"), (*_FACTS, "facts"), least=False),
    _Row("facts falsely superseded", "0", 0, (*_FACTS, "superseded_by_code"), (*_FACTS, "facts"), least=False),
    _Row("lasting facts in the text after 100 folds", ">= 70 %", 0.7, (*_HUNDRED, "told"), (*_HUNDRED, "facts")),
    *(
        _Row(
            f"lasting facts not in the text that search finds, {when}", ">= 95 %", 0.95,
            (*path, "found_of_rest"), (*path, "rest"),
        )
        for path, when in ((_END, "at the end"), (_HUNDRED, "after 100 folds"))
    ),
    _Row("small talk in the text", "<= 10 %", 0.1, (*_TEXT, "small_talk"), (*_TEXT, "facts"), least=False),
    *(
        _Row(
            f"{name} in the text, {half} half, extractive", "0" if wrong else "all", 0 if wrong else 1,
            ("cases: extractive", f"{table}, {half}", "wrong" if wrong else "kept"),
            ("cases: extractive", f"{table}, {half}", "cases" if wrong else "due"),
            unit="cases" if wrong else "statements", least=not wrong, model="",
        )
        for table, name, wrong in (("opposites", "wrong opposites", True), ("people_alike", "people alike", False))
        for half in ("tuned", "apart")
    ),
    *(
        _Row(
            f"names and numbers of people's summaries, {origin}, {who.partition(',')[0]}", f">= {share:.0%}", share,
            (who, origin, "people", "entities_of_summaries"), (who, origin, "people", "entities_due"),
            unit="names and numbers", model=model,
        )
        for origin in _PEOPLE
        for who, share, model in (("extractive", 0.35, ""), (_ANSWERED, 0.45, MODEL))
    ),
    _Row(
        "making the text, 1,000 segments, median CPU ms", "<= 5 ms", 5.0, ("reply_path", "rendering", "cpu_ms", "p50"),
        ("reply_path", "rendering", "segments"), unit="segments", least=False, model="",
    ),
)  # fmt: skip


def memory_targets(ours: dict[str, Json]) -> tuple[Target, ...]:
    """Return every target with its measured value, or a note that this run could not measure it."""
    return (
        _kept_answers(ours),
        _right_facts(ours),
        *(_target(row, ours) for row in _ROWS),
        *(_evenness(origin, who, ours) for origin in _PEOPLE for who in ("extractive", _ANSWERED)),
        at_least(
            "blind comparisons with recursive that ours wins or draws",
            ">= half",
            _number(ours, "blind", "share"),
            0.5,
            _sample(ours, ("blind", "pairs"), "pairs", MODEL),
        ),
        at_least(
            "facts told or found after 20 folds, held-out templates",
            ">= 95 %",
            _best_search(ours),
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
        at_most("memory search over 100,000 turns, P95 ms", "<= 50 ms", _search_p95(ours), 50.0),
    )


def _target(row: _Row, ours: dict[str, Json]) -> Target:
    check = at_least if row.least else at_most
    return check(
        row.name, row.goal, _number(ours, *row.path), row.limit, _sample(ours, row.counted, row.unit, row.model)
    )


def _sample(ours: dict[str, Json], counted: tuple[str, ...], unit: str, model: str) -> str:
    count = _number(ours, *counted)
    return "" if count is None else ", ".join(part for part in (f"{count:.0f} {unit}", model) if part)


def _kept_answers(ours: dict[str, Json]) -> Target:
    facts, kept = _number(ours, *_FACTS, "facts"), _number(ours, *_FACTS, "kept")
    share = kept / facts if facts and kept is not None else None
    sample = _sample(ours, (*_FACTS, "facts"), "facts", MODEL)
    return at_least("facts of a strong model's answers that are kept", ">= 95 %", share, 0.95, sample)


def _right_facts(ours: dict[str, Json]) -> Target:
    kept, right = _number(ours, *_TEXT, "kept"), _number(ours, *_TEXT, "speaker_right")
    share = kept * right if kept is not None and right is not None else None
    sample = _sample(ours, (*_TEXT, "facts"), "facts", MODEL)
    return at_least("labelled facts in the text at the end, of the right person", ">= 8 of 9", share, 8 / 9, sample)


def _evenness(origin: str, who: str, ours: dict[str, Json]) -> Target:
    """Return the target that no third of an evening is neglected."""
    thirds = [_number(ours, who, origin, "people", third) for third in ("first_third", "second_third", "last_third")]
    known = [share for share in thirds if share is not None]
    value = min(known) / max(known) if len(known) == len(thirds) and max(known) else None
    name = f"the worst third of an evening to the best, {origin}, {who.partition(',')[0]}"
    sample = _sample(
        ours, (who, origin, "people", "entities_due"), "names and numbers", "" if who == "extractive" else MODEL
    )
    return at_least(name, ">= 0.7", value, 0.7, sample)


def _number(figures: Json, *path: str) -> float | None:
    for name in path:
        if not isinstance(figures, dict):
            return None
        figures = next(reversed(figures.values()), None) if name == "last" else figures.get(name)
    return float(figures) if isinstance(figures, int | float) else None


def _count_of(ours: dict[str, Json], name: str) -> float:
    """Return how many different items the figures of Roomtone's systems list under `name`."""
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
            for of_set in figures.values():
                if isinstance(of_set, dict) and "summaries" in of_set:
                    yield of_set


def _search_p95(ours: dict[str, Json]) -> float | None:
    """Return the time of the most complete search that was measured: the one with embeddings if there is one."""
    fused = _number(ours, "search_speed_with_embeddings", "p95_ms")
    return _number(ours, "search_speed", "p95_ms") if fused is None else fused


def _best_search(ours: dict[str, Json]) -> float | None:
    """Return the share of facts that the summary or the last search has. The last search is the most complete one."""
    searches = [name for name in ours if name.startswith("search: ")]
    if not searches:
        return None
    return _number(ours, searches[-1], TemplateSet.HELD_OUT.value, str(_TOLD_AFTER), "told_or_found")
