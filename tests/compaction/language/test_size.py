"""The rules about languages stay few, and stay in one folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compaction.language.languages import LANGUAGES

ROOT = Path(__file__).parents[3]
LANGUAGE = ROOT / "compaction" / "language"
MAX_LINES = 1_000


def test_rules_about_languages_have_at_most_1000_lines() -> None:
    """All files about languages together, English and German included, have at most 1,000 lines."""
    assert sum(len(each.read_text("utf-8").splitlines()) for each in LANGUAGE.glob("*.py")) <= MAX_LINES


@pytest.mark.parametrize("folder", ["compaction/summary", "compaction/memory", "bot/brain/embedded"])
def test_no_other_file_knows_a_language(folder: str) -> None:
    """No file of the summary or of the embedded answers has a list of words of a language."""
    listed = LANGUAGES[0].stopwords & {"the", "and", "would", "their", "because", "about"}
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Set | ast.List | ast.Tuple):
                strings = {each.value for each in node.elts if isinstance(each, ast.Constant)}
                assert len(listed & {each for each in strings if isinstance(each, str)}) < 3, path


def test_languages_have_the_same_kinds_of_data() -> None:
    """Every language has the same sorts of cues, and none of them is empty."""
    first = LANGUAGES[0]
    for each in LANGUAGES:
        assert each.cues.keys() == first.cues.keys()
        assert all(each.cues.values())
        assert len(each.stopwords) > 100
        assert len(each.numbers) >= 40
