"""The targets of the memory benchmark, checked against its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import few
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet
from benchmarks.report import Target, at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.report import Json

# The model whose recorded answers were replayed.
MODEL = "recorded answers"

_TOLD_AFTER = 20
_ANSWERED = f"roomtone, {MODEL}"
# Supplied conversations with people's summaries.
_PEOPLE = ("CRD3", "QMSum")
_QUESTIONS = "LoCoMo"
_QUOTED = ("quotes in prompts: full text and meaning", "CRD3, planted")
_HELD_OUT = TemplateSet.HELD_OUT.value
INVENTED_NAMES = "invented names in our summaries"
BUDGET_VIOLATIONS = "budget violations"


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
            f"small talk in the text of the table, {half} half, extractive", "<= 10 %", 0.1,
            ("cases: extractive", f"small talk, {half}", "share"),
            ("cases: extractive", f"small talk, {half}", "lines"),
            unit="lines of small talk in one talk", least=False, model="",
        )
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
        "answers among the quotes of a prompt, planted facts", ">= 95 %", 0.95,
        (*_QUOTED, "answered"), (*_QUOTED, "questions"), unit="questions", model="",
    ),
    _Row(
        "an outdated answer first among the quotes", "<= 5 %", 0.05,
        (*_QUOTED, "stale_first"), (*_QUOTED, "corrected"), unit="corrected facts", least=False, model="",
    ),
    _Row(
        "only an outdated answer among the quotes", "<= 2 %", 0.02,
        (*_QUOTED, "stale_alone"), (*_QUOTED, "questions"), unit="questions", least=False, model="",
    ),
    _Row(
        "making the text, 1,000 segments, median CPU ms", "<= 5 ms", 5.0, ("reply_path", "rendering", "cpu_ms", "p50"),
        ("reply_path", "rendering", "segments"), unit="segments", least=False, model="",
    ),
)  # fmt: skip


def memory_targets(ours: dict[str, Json], peers: dict[str, Json] | None = None) -> tuple[Target, ...]:
    """Return every target with its measured value, or a note that this run could not measure it.

    `peers`: the figures of other systems, for the targets that compare.
    """
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
            _judges(ours),
        ),
        *_evidence(_last_search(ours), _last_search(peers or {})),
        at_most(
            "an outdated value first in the search after 100 folds, held-out templates",
            "<= 5 %",
            _number(_last_search(ours), _HELD_OUT, "100", "old_value_first"),
            0.05,
            _sample(_last_search(ours), (_HELD_OUT, "100", "corrected"), "corrected facts", ""),
        ),
        at_least(
            "facts told or found after 20 folds, held-out templates",
            ">= 95 %",
            _number(_last_search(ours), _HELD_OUT, str(_TOLD_AFTER), "told_or_found"),
            0.95,
            _sample(_last_search(ours), (_HELD_OUT, str(_TOLD_AFTER), "facts"), "facts", ""),
        ),
        at_most(INVENTED_NAMES, "0", _count_of(ours, "invented_names"), 0, _summaries(ours)),
        at_most(BUDGET_VIOLATIONS, "0", _violations(ours), 0, _summaries(ours)),
        at_most(
            "trigger and payload at 10,000 turns, besides tokenising, P99 ms",
            "<= 1 ms",
            _number(ours, "reply_path", "trigger_and_payload_ms", "p99"),
            1.0,
            _sample(ours, ("reply_path", "replies"), "replies", ""),
        ),
        at_most("memory search over 100,000 turns, P95 ms", "<= 50 ms", _search_p95(ours), 50.0, _searches(ours)),
    )


def _target(row: _Row, ours: dict[str, Json]) -> Target:
    check = at_least if row.least else at_most
    return check(
        row.name, row.goal, _number(ours, *row.path), row.limit, _sample(ours, row.counted, row.unit, row.model)
    )


def _sample(ours: Json, counted: tuple[str, ...], unit: str, model: str) -> str:
    count = _number(ours, *counted)
    if count is None:
        return ""
    return few(count, ", ".join(part for part in (f"{count:,.0f} {unit}", model) if part))


def _judges(ours: dict[str, Json]) -> str:
    """Return how many pairs were compared: several verdicts on one pair are no more cases."""
    pairs, verdicts = _number(ours, "blind", "pairs"), _number(ours, "blind", "verdicts")
    if not pairs or verdicts is None:
        return ""
    return few(pairs, f"{pairs:.0f} pairs, {verdicts / pairs:g} judges each, {MODEL}")


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


def made_summaries(ours: dict[str, Json]) -> bool:
    """Return whether any of Roomtone's systems made a summary in this run."""
    return any(_number(figures, "summaries") for figures in _of_sets(ours))


def _count_of(ours: dict[str, Json], name: str) -> float | None:
    """Return how many different items the figures of Roomtone's systems list under `name`; None without summaries."""
    if not made_summaries(ours):
        return None
    found: set[str] = set()
    for figures in _of_sets(ours):
        each = figures.get(name)
        if isinstance(each, list):
            found.update(str(item) for item in each)
    return len(found)


def _violations(ours: dict[str, Json]) -> float | None:
    """Return how often a limit was not kept, or nothing at all was made to fit; None without summaries."""
    names = (
        "summaries_over_1200_chars",
        "summaries_not_ending_on_a_sentence",
        "payloads_over_budget",
        "payloads_refused",
    )
    if not made_summaries(ours):
        return None
    return sum(_number(figures, name) or 0 for figures in _of_sets(ours) for name in names)


def _summaries(ours: dict[str, Json]) -> str:
    made = sum(_number(figures, "summaries") or 0 for figures in _of_sets(ours))
    return few(made, f"{made:,.0f} summaries") if made else ""


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


def _searches(ours: dict[str, Json]) -> str:
    fused = _sample(ours, ("search_speed_with_embeddings", "queries"), "searches", "")
    return fused or _sample(ours, ("search_speed", "queries"), "searches", "")


def _last_search(figures: dict[str, Json]) -> Json:
    """Return the figures of the last search. It is the most complete one."""
    return next((figures[name] for name in reversed(figures) if name.startswith("search: ")), None)


def _evidence(ours: Json, plain: Json) -> Iterator[Target]:
    """Yield the targets about people's questions: the evidence is among the first ten results."""
    count = _number(ours, _QUESTIONS, "people", "questions")
    sample = "" if count is None else f"{count:.0f} questions"
    for name, key, least in (
        ("questions with evidence", "evidence_in_first_ten", 0.78),
        ("evidence turns", "evidence_turns_in_first_ten", 0.72),
    ):
        found, plainly = (_number(figures, _QUESTIONS, "people", key) for figures in (ours, plain))
        more = None if found is None or plainly is None else found - plainly
        yield at_least(f"{name} among the first ten, {_QUESTIONS}", f">= {least:.0%}", found, least, sample)
        yield at_least(f"{name} among the first ten, beyond plain BM25, {_QUESTIONS}", "> 0", more, 1e-4, sample)
