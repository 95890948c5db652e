"""The rules about languages stay few, and stay in one folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compaction.language.languages import LANGUAGES
from compaction.language.text import words

ROOT = Path(__file__).parents[3]
LANGUAGE = ROOT / "compaction" / "language"
# Where summary, recall and embedded answers are. The rules about who is addressed (`bot/brain`) do not count.
OUTSIDE = ("compaction/summary", "compaction/memory", "compaction/folding", "bot/memory", "bot/brain/embedded")
MAX_LINES = 1_000
# Words of a language that no pattern of another kind has: no word of code, of a prompt's labels or of a format.
TELLING_WORDS = 2


def test_rules_about_languages_have_at_most_1000_lines() -> None:
    """All files about languages together, English and German included, and the patterns and lists of words outside of
    them have at most 1,000 lines of code and comments.
    """
    inside = sum(_written_lines(each.read_text("utf-8")) for each in LANGUAGE.glob("*.py"))
    outside = [
        _written_lines(ast.get_source_segment(source, each) or "")
        for folder in OUTSIDE
        for path in (ROOT / folder).rglob("*.py")
        for source in [path.read_text("utf-8")]
        for each in ast.parse(source).body
        if isinstance(each, ast.Assign | ast.AnnAssign) and _knows_a_language(each)
    ]
    assert len(outside) > 5, "the patterns outside are not found any more"
    assert inside + sum(outside) <= MAX_LINES


def _written_lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def _knows_a_language(assigned: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether a constant is a pattern or a collection with words of a language."""
    value = assigned.value
    if not isinstance(value, ast.Call | ast.Set | ast.List | ast.Tuple | ast.Dict):
        return False
    strings = [each.value for each in ast.walk(value) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    found = {word for each in strings for word in words(each)}
    return any(len(found & each.vocabulary) >= TELLING_WORDS for each in LANGUAGES)


@pytest.mark.parametrize("folder", OUTSIDE)
def test_no_other_file_has_stop_words(folder: str) -> None:
    """No file of the summary or of the embedded answers has a list of the commonest words of a language."""
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
