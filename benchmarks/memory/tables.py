"""Tables of a stored result of the memory benchmark, in Markdown: each appears only if its figures were measured.

The sets of conversations are told apart by their names: generated evenings (`tuning`, `held_out`), `written` ones, and
those that the run was given (CRD3, LoCoMo, QMSum; `CRD3, planted` is CRD3 with made-up facts said in it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.figures import SUMMARY_SHARES, entry_of
from benchmarks.markdown import cell, share, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

_OF_PEOPLE = ("entities_of_summaries", "first_third", "second_third", "last_third")
_SEARCH = "search: "
_QUOTES = "quotes in prompts: "
_BARGE_IN = "barge_in"
# It has no summary, so all of its text is judged: of the others 1,200 characters.
_WINDOW = "last 50 turns"
_FOUND = {"found": "found", "told_or_found": "told or found", "old_value_first": "an outdated value first"}


def summary_tables(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield one table for each set of conversations: what each system had kept after how many folds. Sets without
    labelled facts are rows of one table.
    """
    entries = _entries(report)
    names = dict.fromkeys(
        name for entry in entries.values() for name, figures in entry.items() if "after_folds" in _dict(figures)
    )
    without_facts: list[tuple[str, ...]] = []
    for name in names:
        found = {who: figures for who, entry in entries.items() if (figures := entry_of(entry, name))}
        if not any(_facts(figures) for figures in found.values()):
            without_facts += (row for who, figures in found.items() for row in _made(name, who, figures))
            continue
        rows = [row for who, figures in found.items() for row in _kept(who, figures)]
        yield f"Evenings of the set `{name}`:" if name in {"tuning", "held_out"} else f"Conversations of {name}:"
        yield ""
        yield from table(("who", "folds", "facts", *SUMMARY_SHARES.values(), "invented", "s a fold"), rows)
    if without_facts:
        yield "Conversations without labelled facts:"
        yield ""
        yield from table(("conversations", "how many", "who", "summaries", "invented", "s a fold"), without_facts)


def people_tables(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield one table for each set: the share of the names and numbers of people's summaries, by thirds too."""
    entries = _entries(report)
    for name in dict.fromkeys(name for entry in entries.values() for name in entry):
        found = {who: entry_of(entry_of(entry, name), "people") for who, entry in entries.items()}
        rows = [
            (
                f"{who}, whole" if who == _WINDOW else who,
                cell(figures.get("entities_due")),
                *(share(figures.get(each)) for each in _OF_PEOPLE),
            )
            for who, figures in found.items()
            if figures.get("entities_due") and not who.startswith(_SEARCH)
        ]
        if rows:
            yield f"Names and numbers of what people wrote about {name}:"
            yield ""
            yield from table(("who", "names and numbers", "told", "first third", "second", "last"), rows)


def search_tables(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the tables of searches: planted facts, people's questions with known evidence, and quotes in prompts."""
    entries = _entries(report)
    searches = {who.removeprefix(_SEARCH): entry for who, entry in entries.items() if who.startswith(_SEARCH)}
    facts = [
        (f"`{name}`", who, folds, *(cell(found.get(each)) for each in ("facts", "corrected")), *_found(found))
        for name in dict.fromkeys(name for entry in searches.values() for name in entry)
        for who, entry in searches.items()
        for folds, found in _last_with_facts(entry_of(entry, name))
    ]
    if facts:
        yield "Planted facts, at the most folds:"
        yield ""
        yield from table(("evenings", "who", "folds", "facts", "of them corrected", *_FOUND.values()), facts)
    evidence = [
        (name, who, cell(people.get("questions")), share(first), share(people.get("evidence_turns_in_first_ten")))
        for who, entry in searches.items()
        for name in entry
        if (first := (people := entry_of(entry_of(entry, name), "people")).get("evidence_in_first_ten")) is not None
    ]
    if evidence:
        yield "People's questions, with evidence among the first ten results:"
        yield ""
        yield from table(("conversations", "who", "questions", "with evidence", "of the evidence turns"), evidence)
    if quotes := [row for who, entry in entries.items() if who.startswith(_QUOTES) for row in _quotes(who, entry)]:
        yield "Questions whose answer is among the quotes of a prompt:"
        yield ""
        counts = ("how many", "questions", "answered", "tokens, mean", "tokens, most")
        yield from table(("conversations", "search by", *counts), quotes)


def barge_in_table(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield the table of what became of folds while every reply was interrupted. Libraries keep a message for each
    reply that was cut off, too.
    """
    rows = [
        (
            f"{who.removeprefix(_BARGE_IN).strip() or 'Roomtone'}{_version(figures)}",
            *(cell(figures.get(each)) for each in ("turns", "asked", "applied", "behind")),
        )
        for who, figures in _entries(report).items()
        if who.startswith(_BARGE_IN) and "asked" in figures
    ]
    if rows:
        yield "Every reply is interrupted as soon as it begins, and a summary takes as long as five turns:"
        yield ""
        yield from table(("who", "turns", "folds asked for", "applied", "messages that the summary is behind"), rows)


def _entries(report: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    both = {**entry_of(report, "ours"), **entry_of(report, "peers")}
    return {who: entry for who, entry in both.items() if isinstance(entry, dict)}


def _dict(figures: Json) -> dict[str, Json]:
    return figures if isinstance(figures, dict) else {}


def _version(figures: Mapping[str, Json]) -> str:
    return f" ({cell(figures['version'])})" if figures.get("version") else ""


def _facts(figures: Mapping[str, Json]) -> bool:
    return any(_dict(at).get("facts") for at in entry_of(figures, "after_folds").values())


def _invented(figures: Mapping[str, Json]) -> str:
    lists = [figures.get(each) for each in ("invented_names", "invented_numbers")]
    return str(sum(len(each) for each in lists if isinstance(each, list)))


def _seconds(figures: Mapping[str, Json]) -> str:
    return cell(entry_of(figures, "cost").get("fold_p50_s"))


def _kept(who: str, figures: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one system in one set of conversations, by folds."""
    after = entry_of(figures, "after_folds")
    for number, (folds, at) in enumerate(after.items()):
        found = _dict(at)
        last = number == len(after) - 1
        yield (
            f"{who}{_version(figures)}" if number == 0 else "",
            folds,
            cell(found.get("facts")),
            *(share(found.get(each)) for each in SUMMARY_SHARES),
            _invented(figures) if last else "",
            _seconds(figures) if last else "",
        )


def _made(name: str, who: str, figures: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """Yield the row of a system that made summaries of conversations without labelled facts."""
    if figures.get("summaries"):
        counts = (cell(figures.get("conversations")), f"{who}{_version(figures)}", cell(figures.get("summaries")))
        yield name, *counts, _invented(figures), _seconds(figures)


def _found(found: Mapping[str, Json]) -> Iterator[str]:
    yield from (share(found.get(each)) for each in _FOUND)


def _quotes(who: str, entry: Mapping[str, Json]) -> Iterator[tuple[str, ...]]:
    """Yield one row for each set of conversations in which questions were asked."""
    for name, figures in ((name, _dict(figures)) for name, figures in entry.items()):
        counts = (cell(figures.get(each)) for each in ("conversations", "questions"))
        told = (share(figures.get("answered")), *(cell(figures.get(each)) for each in ("tokens_mean", "tokens_most")))
        yield name, who.removeprefix(_QUOTES), *counts, *told


def _last_with_facts(by_folds: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield the last number of folds with its figures, if facts were asked for there."""
    counted = [(folds, _dict(found)) for folds, found in by_folds.items() if folds != "people"]
    yield from (each for each in counted[-1:] if each[1].get("facts"))
