"""Texts: an English string that knows its sentence, so that it can be read in another language where it arrives."""

from __future__ import annotations

import copy
import pickle

import pytest

from bot.errors import SetupError
from bot.texts import text as module
from bot.texts.text import (
    Catalogue,
    Text,
    catalogue,
    counted,
    in_language,
    joined,
    languages,
    parse_catalogue,
    sentence_of,
    verbatim,
)
from compaction.errors import StoreError
from voice.errors import RealtimeError, VoiceError

GERMAN = parse_catalogue(
    """
    name = "Deutsch"
    numbers = { thousands = ".", decimal = "," }
    [commands]
    join = "beitreten"
    [texts]
    "It failed. {why}" = "Es ging nicht: {why}"
    "wrong" = "{nobody} gave this"
    [texts.room]
    "I am in {channel}." = "Ich bin in {channel}."
    "{count} thing" = "{count} Ding"
    "{count} things" = "{count} Dinge"
    "Hello." = "Hallo."
    """
)


@pytest.fixture(autouse=True)
def german(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use these lines for German, and none for any other language."""
    monkeypatch.setattr(module, "catalogue", lambda language: GERMAN if language == "de" else Catalogue("English"))


def test_a_text_is_english_until_somebody_reads_it_in_another_language() -> None:
    """A text is a plain English string, and the same values are filled into the sentence of the other language."""
    text = Text("I am in {channel}.", channel="Evening")
    assert text == "I am in Evening."
    assert in_language(text, "de") == "Ich bin in Evening."
    assert in_language(text, "fr") == "I am in Evening."
    assert in_language("Said by somebody.", "de") == "Said by somebody."


def test_braces_in_a_value_are_no_placeholders() -> None:
    """What people are called is hostile: a name with braces is only a name."""
    name = "{channel.__class__} {0}"
    assert in_language(Text("I am in {channel}.", channel=name), "de") == f"Ich bin in {name}."
    assert in_language(verbatim(name), "de") == name


def test_numbers_are_written_as_the_language_writes_them() -> None:
    """Thousands and decimals follow the language; one thing has its own sentence."""
    assert in_language(counted(1, "{count} thing", "{count} things"), "de") == "1 Ding"
    many = counted(12_345, "{count} thing", "{count} things")
    assert (many, in_language(many, "de")) == ("12,345 things", "12.345 Dinge")
    assert in_language(Text("I am in {channel}.", channel=1.5), "de") == "Ich bin in 1,5."
    assert Text("{cost:.2f} dollars", cost=0.5) == "0.50 dollars"


def test_texts_in_texts_are_translated_too() -> None:
    """Values that are texts, the parts of joined texts, and the sentence of an error are translated."""
    error = SetupError(Text("Hello."))
    failed = Text("It failed. {why}", why=sentence_of(error))
    assert (failed, in_language(failed, "de")) == ("It failed. Hello.", "Es ging nicht: Hallo.")
    both = joined((Text("Hello."), "", "Ada", Text("I am in {channel}.", channel="x")), "\n")
    assert both == "Hello.\nAda\nI am in x."
    assert in_language(both, "de") == "Hallo.\nAda\nIch bin in x."
    assert in_language(sentence_of(StoreError("The disk is full.")), "de") == "The disk is full."


def test_errors_of_other_packages_are_translated_by_their_template() -> None:
    """An error of `voice` or `compaction` knows its sentence and its values, and one may be a value of another."""
    failed = RealtimeError("It failed. {why}", why=VoiceError("I am in {channel}.", channel="x"), retryable=False)
    assert (str(failed), failed.retryable) == ("It failed. I am in x.", False)
    assert in_language(sentence_of(failed), "de") == "Es ging nicht: Ich bin in x."
    assert in_language(Text("It failed. {why}", why=StoreError("Hello.")), "de") == "Es ging nicht: Hallo."
    assert str(VoiceError("{no} values")) == "{no} values"


def test_a_line_that_does_not_fit_leaves_the_english_one() -> None:
    """A translation with other placeholders breaks no answer."""
    assert in_language(Text("wrong", somebody="Ada"), "de") == "wrong"


def test_a_constant_gets_its_values_later() -> None:
    """`fill` gives a constant its values; copies and pickles keep what they were made of."""
    template = Text("I am in {channel}.")
    filled = template.fill(channel="Evening")
    for same in (filled, copy.deepcopy(filled), pickle.loads(pickle.dumps(filled))):
        assert (same, in_language(same, "de")) == ("I am in Evening.", "Ich bin in Evening.")


def test_a_sentence_is_translated_once() -> None:
    """The same sentence in two groups of a file is a mistake."""
    with pytest.raises(ValueError, match="translated twice"):
        parse_catalogue('name = "x"\n[texts.a]\n"Hi." = "A"\n[texts.b]\n"Hi." = "B"\n')


@pytest.mark.parametrize("locale", ["", "../de", "de/../de", "xx", "en-US", "\0", "de\n"])
def test_a_language_without_a_file_is_english(locale: str) -> None:
    """Whatever Discord calls a locale, no other file is read."""
    assert catalogue(locale).name == "English"


def test_the_languages_are_the_files() -> None:
    """English, and each file of the folder; a country falls back to its language."""
    assert languages() == {"en": "English", "de": "Deutsch"}
    assert catalogue("de-AT").name == "Deutsch"
