"""Writes docs/spec-coverage.md: each requirement of the five specifications, and the tests that fail without it.

A test says `@pytest.mark.covers("1.7")`. `python -m tests.docs.spec_coverage` writes the page, and prints the
requirements that no test is marked with.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "spec-coverage.md"

TITLES = {
    1: "Rolling context compaction",
    2: "Rolling context window",
    3: "Three tiers",
    4: "Prompt management",
    5: "Tool outputs",
}
REQUIREMENTS = {
    "1.1": "the last 50 turns stay word for word",
    "1.2": "the summary grows and is condensed",
    "1.3": "attribution stays, also in a turn of several people",
    "1.4": "notes fold into the same summary; folded is only what a fold was shown",
    "1.5": "state of the session",
    "1.6": "50, 10, 1,200, 400",
    "1.7": "evaluated when context is built",
    "1.8": "61 -> 0..9, 71 -> 10..19",
    "1.9": "a reply uses what there is",
    "1.10": "elastic window; no turn is lost",
    "1.11": "the prompt's parts and priorities",
    "1.12": "`Earlier in this session: ...`",
    "1.13": "realtime: `Session conversation summary:`, 5,200 characters",
    "1.14": "order of worth",
    "1.15": "notes wait, with who, what and why",
    "1.16": "short sessions cost nothing",
    "1.17": "overlong: cap, one more pass, cut at a sentence",
    "1.18": "failure is not fatal",
    "1.19": "several speakers in one turn",
    "1.20": "the next generation has the new summary",
    "1.21": "the four log events",
    "1.22": "reasons of skipped checks",
    "2.1": "oldest dropped without a model call",
    "2.2": "down to 80 %, at least 10 kept",
    "2.3": "the note: count, tokens, range, hint",
    "2.4": "stored first, and searchable",
    "2.5": "the result, also in the log",
    "2.6": "options: target, minimum, note",
    "2.7": "without search: another mode, with a warning",
    "3.1": "three tiers",
    "3.2": "> 60 %: queue; > 80 % and 50 turns: archive",
    "3.3": "pruned after 30 days",
    "3.4": "cold: 20 turns, completed, 5 messages",
    "3.5": "checks every 10 turns",
    "3.6": "JSON of queue and segments",
    "3.7": "decisions, files, errors, outcomes stay",
    "3.8": "80 to 90 % fewer tokens",
    "3.9": "archive searched only when asked to",
    "3.10": "access counts and relevance",
    "3.11": "force, view, clear, opt out, report",
    "3.12": "check < 50 ms, prune < 100 ms, search ~ 200 ms",
    "4.1": "in front of every model call",
    "4.2": "estimates by family; a careful fallback",
    "4.3": "functions by these names, which the product calls",
    "4.4": "order of preservation",
    "4.5": "never over budget; an error that helps",
    "4.6": "what was cut can be summarised",
    "4.7": "summaries stored, put in again, never overflowing",
    "4.8": "settings `enabled` ... `token_estimator`",
    "4.9": "`/rolling-context`",
    "4.10": "token use is logged",
    "4.11": "stress",
    "5.1": "5 steps: a placeholder; 2,000 tokens: head and tail",
    "5.2": "outputs age in the talk itself",
    "5.3": "active files stay",
    "5.4": "paths, errors, outcome of what was cut",
    "5.5": "before every call",
    "5.6": "functions by these names",
}
_BEGIN = """\
# What the specifications ask for, and the tests that fail without it

Made of the tests' marks by `python -m tests.docs.spec_coverage`. Comments call the specifications, which are not in
this repository, spec 1 to spec 5. Tests are named without `tests/` and `test_`.
"""
_END = """\
## What differs on purpose

- Cursors are absolute turn numbers, because a bounded list shifts.
- The constants of spec 1 are no settings, because they depend on each other.
- Each batch is compressed when it is folded. No reminder asks the model to do it.
- The queue and the archive are in the database. `roomtone memory export` writes the files of spec 3.
- Records are deleted with their session, because [privacy](privacy.md) promises it. Pruning is daily.
- The turns of a record count as they stand in a prompt, with names and times. Of their words alone, records of a
  model save 68 to 73 %.
- 48 notes that wait begin a fold of their own, also before the sixty-first turn: people who watch in silence add no
  turns.
- The default mode is `summary`, and the budget is on: 32,768 tokens, not 128,000, because local models take no more.
  Free for the answer are 4,096, or a quarter of the budget if that is less. The newest 10 turns are worth more, not 5,
  as spec 2 keeps 10.
- The fallback of token counting is not characters / 4, which counts too few.
- A cut is condensed by rules, because a reply waits for no second model call.
"""


def covering() -> dict[str, list[str]]:
    """Return the tests that are marked with each requirement, as `folder/file::test`."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(REPOSITORY / "tests").as_posix()
        text = path.read_text("utf-8")
        for test in ast.walk(ast.parse(text if "mark.covers" in text else "")):
            if not isinstance(test, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            marks = (each for each in test.decorator_list if isinstance(each, ast.Call))
            for mark in (each for each in marks if ast.unparse(each.func) == "pytest.mark.covers"):
                name = f"{folder}/{path.stem.removeprefix('test_')}::{test.name.removeprefix('test_')}"
                for each in mark.args:
                    found[str(ast.literal_eval(each))].append(name)
    return found


def page() -> str:
    """Return the page."""
    tests = covering()
    lines = [_BEGIN]
    for part, title in TITLES.items():
        lines += [f"## {part}. {title}\n", "| asked for | tests |", "|---|---|"]
        for requirement, asked in REQUIREMENTS.items():
            if requirement.startswith(f"{part}."):
                named = ", ".join(f"`{each}`" for each in tests.get(requirement, ())) or "**missing**"
                lines.append(f"| {requirement} {asked} | {named} |")
        lines.append("")
    return "\n".join([*lines, _END])


def uncovered() -> list[str]:
    """Return the requirements that no test is marked with."""
    tests = covering()
    return [f"{requirement} {asked}" for requirement, asked in REQUIREMENTS.items() if requirement not in tests]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print("\n".join(f"missing: {each}" for each in uncovered()))  # noqa: T201 - a command
