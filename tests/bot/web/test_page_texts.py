"""The language of a page: how it is chosen, and that its HTML and scripts are translated without being changed."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.texts.text import catalogue
from bot.web.page_texts import chosen_language, page_file, page_in, texts_module, texts_of_script
from tests.bot.texts.source import texts_of_page

STATIC = resources.files("bot.web") / "static"
PAGES = sorted(file.name for file in STATIC.iterdir() if file.name.endswith(".html"))


@pytest.mark.parametrize(
    ("cookie", "accepted", "expected"),
    [
        (None, None, "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "en-GB,de;q=0.9", "en"),
        (None, "fr;q=0.9, DE ; q=0.5, en;q=0.1", "de"),
        (None, "xx, yy;q=0.5", "en"),
        ("en", "de", "en"),
        ("de", "en", "de"),
        ("../de", "en", "en"),
        ("xx", "de", "de"),
    ],
)
def test_the_chosen_language_comes_before_the_browsers(cookie: str | None, accepted: str | None, expected: str) -> None:
    """A choice counts if there is such a language, then the browser's languages in their order, then English."""
    assert chosen_language(cookie, accepted) == expected


@given(cookie=st.text(max_size=20), accepted=st.text(alphabet="de-AT,;q=0.19* \x00", max_size=60))
def test_whatever_a_browser_sends_there_is_a_language(cookie: str, accepted: str) -> None:
    """No header breaks a page."""
    assert chosen_language(cookie, accepted) in {"de", "en"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_same_elements_in_every_language(name: str) -> None:
    """Only texts, labels and the page's language differ from the English file."""
    english = (STATIC / name).read_text("utf-8")
    german = page_file(name, "de").decode()
    assert '<html lang="de">' in german
    assert '<html lang="en">' in page_file(name, "en").decode()

    def elements(html: str) -> list[str]:
        # Labels are translated; a slash or a quote may be written otherwise.
        return re.findall(r"</?[a-z0-9]+|(?:id|class|href|src|data-\w+)=\"[^\"]*\"", html)

    assert elements(german) == elements(english)
    known = catalogue("de").texts
    assert texts_of_page(german) == [known[text] for text in texts_of_page(english)]


def test_texts_and_labels_are_translated_and_names_are_not() -> None:
    """Text nodes and labels go through the catalogue; an element with `translate="no"` stays, and so does markup."""
    html = '<p title="Hi">A &amp; <b>b</b> 7</p><p translate="no">Name <i>x</i></p>'
    translated = page_in(html, "de", {"Hi": "HI", "b": "B", "Name": "NAME", "x": "X"})
    assert translated == '<p title="HI">A &amp; <b>B</b> 7</p><p translate="no">Name <i>x</i></p>'
    assert page_in("<p>x</p>", "de", {"x": "<script>"}) == "<p>&lt;script&gt;</p>"


def test_the_sentences_of_a_script_are_found() -> None:
    """Those of `t`, `around` and `counted`, also on lines of their own."""
    script = (
        'a(t("One \\"x\\"."), t(\n  "Two {y}", { y }), around("Three", {}), '
        'counted(n.a(1), "{count} f", "{count} g"), set("x"))'
    )
    assert sorted(texts_of_script(script)) == ['One "x".', "Three", "Two {y}", "{count} f", "{count} g"]


@pytest.mark.parametrize("name", sorted(file.name for file in STATIC.iterdir() if file.name.endswith(".js")))
def test_the_sentences_of_a_script_are_literals(name: str) -> None:
    """A sentence stands in the call, so that it is found."""
    # `text.js` defines them.
    script = "" if name == "text.js" else (STATIC / name).read_text("utf-8")
    assert re.findall(r"\b(?:t|around)\(\s*(?!\")[^)\s].{0,40}", script) == []


def test_the_scripts_get_the_translations() -> None:
    """The module has every translation, and none for English."""
    german = texts_module("de").decode()
    texts = json.loads(re.search(r"TEXTS = (.*);", german)[1])  # type: ignore[index]
    assert texts["Conversation"] == "Gespräch"
    assert 'LANGUAGE = "de"' in german
    assert "TEXTS = {};" in texts_module("en").decode()
