"""Write the kept results into docs/benchmarks.md and the README: `python -m benchmarks.document`.

The part between the two marks is generated from the JSON files in docs/benchmarks/. No figure in that part is typed by
hand.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.registry import BENCHMARKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.report import Json

    Results = Mapping[str, Mapping[str, Json]]

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "docs" / "benchmarks"
BEGIN = "<!-- kept results: made by `python -m benchmarks.document` -->"
END = "<!-- end of the kept results -->"
# Runs that are no benchmark of `roomtone bench`: they break what they measure, or take hours.
LONG_RUNS = {
    "endurance": "Outages of an hour, an hour of a room, 1,000 kills: `make endurance`",
    "store-writers": "Processes that store turns in one PostgreSQL: `python -m tests.cluster_faults.writers`",
    "cluster-faults": "Machines and services that a cluster loses, each three times: `make endurance`",
}
# Those of the machines that the page names.
CORES = 2
# So many targets of one result begin with the same event, where they share a row.
PER_EVENT = 4

# What the README shows: the result, its target, plain words, and the form of the value.
HEADLINES = (
    (
        "reply-questions",
        "end of speech to first voiced sound, P50 ms",
        "End of a short question to the first sound of the answer, median, without the language model's time",
        "{:,.0f} ms",
    ),
    ("reply-questions", "end of speech to first voiced sound, P95 ms", "The same, 95th percentile", "{:,.0f} ms"),
    (
        "listen",
        "answered of what was for it, held-out talks",
        "Share of the questions to the bot that it answers",
        "{:.1%}",
    ),
    (
        "listen",
        "spoken unasked in real talk among people, whole turns",
        "Answers that nobody asked for, in transcripts of meetings and games",
        "{:.0f}",
    ),
    (
        "memory",
        "answers among the quotes of a prompt, planted facts",
        "Share of questions about earlier talk whose answer reaches the model as a quote",
        "{:.1%}",
    ),
)


def update_page(page: str, results: Results) -> str:
    """Return the page with the results of each benchmark between its marks. Raises ValueError if a mark is missing."""
    named = {entry.name: (entry.title, entry.results) for entry in BENCHMARKS}
    named |= {name: (title, (name,)) for name, title in LONG_RUNS.items()}
    lines: list[str] = []
    for name, (title, files) in named.items():
        kept = {file: results[file] for file in files if file in results}
        lines += [f"### {name}", "", *([f"{title}.", ""] if name in LONG_RUNS else [])]
        lines += [*_lines(kept)] if kept else ["No result is kept.", ""]
    return _between_marks(page, lines)


def update_readme(page: str, results: Results) -> str:
    """Return the README with its few headline figures from the results. Raises ValueError if a mark is missing."""
    rows = [
        (words, form.format(target["value"]), cell(target.get("goal")), met(target), cell(target.get("sample")))
        for result, name, words, form in HEADLINES
        for target in targets_of(results.get(result, {}))
        if target.get("name") == name and isinstance(target.get("value"), int | float)
    ]
    return _between_marks(page, table(("", "measured", "goal", "", "of"), rows))


def kept_results(folder: Path = RESULTS) -> dict[str, dict[str, Json]]:
    """Return the stored results by file name without its ending."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def _between_marks(page: str, lines: Iterable[str]) -> str:
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page lacks {BEGIN} or {END}.")
    return "\n".join([f"{head}{BEGIN}", "", *lines, f"{END}{tail}"])


def _lines(kept: Results) -> Iterator[str]:
    """Yield of each result its machine, then each target that was measured. What is measured for several events is one
    line an event.
    """
    for file, report in kept.items():
        machine = report.get("machine")
        if isinstance(machine, dict):
            load, cores = machine.get("load_1m"), machine.get("cores")
            cells = (cell(machine.get(each)) for each in ("date", "cpu", *(["cores"] * (cores != CORES))))
            busy = isinstance(load, float) and isinstance(cores, int) and load > cores
            told = f"{', '.join(filter(None, cells))}{' cores' * (cores != CORES)}{f', load {load}' * busy}"
            yield from (f"[{file}](benchmarks/{file}.json): {told}.", "")
        grouped: dict[str, list[Mapping[str, Json]]] = {}
        found = [each for each in targets_of(report) if met(each) != "not measured"]
        for target in found:
            event, _, measure = str(target["name"]).partition(": ")
            if measure and sum(str(each["name"]).startswith(f"{event}: ") for each in found) == PER_EVENT:
                grouped.setdefault(event, []).append(target)
            else:
                of = "; ".join(filter(None, (cell(target["goal"]), _sample(target))))
                yield f"- {target['name']}: {_judged(target)} ({of})"
        yield from _events(grouped)
        yield ""
    for report in kept.values():
        yield from _evidence(report)


def _events(grouped: Mapping[str, Sequence[Mapping[str, Json]]]) -> Iterator[str]:
    """Yield a line of what came out alike for several events, and one of the rest of each."""
    told = {event: [_outcome(each) for each in targets] for event, targets in grouped.items()}
    times = Counter(outcome for outcomes in told.values() for outcome in outcomes)
    alike = [outcome for outcome, count in times.items() if count == len(told) > 1]
    if alike:
        yield f"- each of these: {'; '.join(alike)}"
    for event, targets in grouped.items():
        yield f"- {event}: {'; '.join(each for each in told[event] if each not in alike)} ({_sample(targets[0])})"


def _outcome(target: Mapping[str, Json]) -> str:
    return f"{str(target['name']).partition(': ')[2]}: {_judged(target)} ({cell(target['goal'])})"


def _judged(target: Mapping[str, Json]) -> str:
    """Return the figure of a target, and that it is not met."""
    return measured(target) if met(target) == "met" else f"{measured(target)}, {met(target)}"


def _sample(target: Mapping[str, Json]) -> str:
    """Return what was counted. Behind a semicolon is what a sample tells besides."""
    return cell(target.get("sample")).partition(";")[0]


def _evidence(report: Mapping[str, Json]) -> Iterator[str]:
    """Yield how often each way to search finds the evidence in LoCoMo, where a result has it."""
    match report:
        case {"ours": {"evidence": {"LoCoMo": dict(ways)}}}:
            head = ("evidence among ten hits", "a hit", "recall of all", "CPU, ms")
            columns = {"hit": "%", "recall": "%", "cpu_ms": "ms"}
            rows = (
                (way, *(measured({"goal": goal, "value": judged[name]}) for name, goal in columns.items()))
                for way, judged in ways.items()
                if isinstance(judged, dict)
            )
            yield from table(head, rows)


def targets_of(report: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    """Return the targets of a stored result."""
    targets = report.get("targets")
    return [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, and an empty one."""
    columns = tuple(head)
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def met(target: Mapping[str, Json]) -> str:
    """Return whether a target is met, in words."""
    match target["met"]:
        case True:
            return "met"
        case False:
            return "**not met**"
        case _:
            return "not decided" if isinstance(target["value"], int | float) else "not measured"


def measured(target: Mapping[str, Json]) -> str:
    """Return the figure of a target, as a percentage where its goal is one."""
    value = target["value"]
    if isinstance(value, int | float) and "%" in str(target["goal"]):
        return f"{cell(100.0 * value)} %"
    return cell(value)


def cell(value: Json) -> str:
    """Return a figure with three significant digits; nothing if there is none."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    # Never scientific notation.
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text("utf-8"), kept_results()), "utf-8")
    README.write_text(update_readme(README.read_text("utf-8"), kept_results()), "utf-8")
