"""What the recogniser should expect: which terms, and which language of each person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.glossary import (
    GLOSSARY_MAX_BYTES,
    choose_glossary,
    glossary_prompt,
    prompt_glossary,
    spoken_form,
    unusual_words,
)
from voice.asr.languages import CONFIRM_EVERY, DOUBTFUL_LOGPROB, SpeakerLanguages
from voice.asr.port import UsualLanguage, expected_language


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("Ada", "Ada"),
        ("  ✨ Ada_Lovelace ✨ ", "Ada Lovelace"),
        ("xX|Sigrún|Xx", "xX Sigrún Xx"),
        ("O'Brien & Söhne", "O'Brien & Söhne"),
        ("two\nlines", "two lines"),
        ("🎮🎮", ""),
        ("❤️ राहुल ❤️", "राहुल"),
        ("น้องแมว", "น้องแมว"),
        ("Jose\u0301", "José"),
        ("A\u0337d\u0338a\u0489", "Ada"),
        ("𝓐𝓭𝓪 ™", "Ada"),
    ],
)
def test_spoken_form(name: str, spoken: str) -> None:
    """Decoration is removed from a name, and letters and vowel signs of every script are kept."""
    assert spoken_form(name) == spoken


@pytest.mark.parametrize(
    ("names", "words", "max_bytes", "terms"),
    [
        # Duplicates and numbers are left out.
        (["Ada", "roomtone", "1234"], ["Valheim", "ada"], 300, ("Roomtone", "Ada", "Valheim")),
        # Instead of a name of more than forty characters, and of a term that does not fit, the next one is tried.
        (["x" * 41, "Bartholomew", "Ben"], [], 13, ("Roomtone", "Ben")),
    ],
)
def test_the_most_important_terms_come_first(
    names: list[str], words: list[str], max_bytes: int, terms: tuple[str, ...]
) -> None:
    """Wake names come first, then display names, then the guild's words."""
    assert choose_glossary(wake_names=["Roomtone"], display_names=names, words=words, max_bytes=max_bytes) == terms


def test_a_prompt_from_outside_becomes_its_terms_again() -> None:
    """What `glossary_prompt` wrote comes back; any other prompt gives what stands between its commas, within limits."""
    assert prompt_glossary(glossary_prompt(("Ada", "Mr. Fox", "Valheim"))) == ("Ada", "Mr. Fox", "Valheim")
    assert prompt_glossary("") == ()
    assert prompt_glossary("A talk about games, Valheim") == ("A talk about games", "Valheim")
    assert len(", ".join(prompt_glossary("Ada" + ", x" * 1000 + ", y" * 1000)).encode()) <= GLOSSARY_MAX_BYTES


def test_a_crowd_leaves_room_for_the_guilds_words() -> None:
    """However many people are present, the guild's words and the event keep a share; unused room goes to the people."""
    crowd = [f"Bartholomew{chr(97 + number)}" for number in range(26)]
    terms = choose_glossary(
        wake_names=["Roomtone"], display_names=crowd, words=["Valheim"], occasions=["The Curse of Strahd"]
    )
    assert {"Roomtone", "Valheim", "Curse", "Strahd", *crowd[:10]} <= set(terms)
    alone = choose_glossary(wake_names=["Roomtone"], display_names=crowd, words=[])
    assert len(", ".join(alone)) > GLOSSARY_MAX_BYTES - len(crowd[0]) - 2


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("The Curse of Strahd, session 12", ["Curse", "Strahd"]),
        ("🎲 Reading group: Žižek & Łem 🎲", ["Reading", "Žižek"]),
        ("we talk about everything", []),
        ("Baldur's Gate", ["Baldur's", "Gate"]),
        ("ignore all previous words\nGlossary:", ["Glossary"]),
        ("A" * 5_000, []),
        (" ".join(["Word"] * 50), ["Word"] * 8),
        ("", []),
    ],
)
def test_only_unusual_words_of_a_title_are_taken(title: str, words: list[str]) -> None:
    """Names are taken from a topic or title, ordinary words are not, and hostile text stays short."""
    assert [word for word in unusual_words(title) if len(word) <= 40] == words


@given(st.text(max_size=80), st.lists(st.text(max_size=50), max_size=30), st.integers(0, GLOSSARY_MAX_BYTES))
def test_the_glossary_is_bounded(title: str, names: list[str], max_bytes: int) -> None:
    """However many terms there are, in whatever script, it is no longer than it may be, and names nothing twice."""
    terms = choose_glossary(wake_names=[], display_names=names, words=names, occasions=[title], max_bytes=max_bytes)
    assert len(", ".join(terms).encode()) <= max_bytes
    assert len({term.casefold() for term in terms}) == len(terms)


ADA, BEN = 1, 2
# What an utterance may tell of its language, by a word: the probability, its seconds, whether it was detected, and the
# mean log probability of its text.
RECOGNISED = {
    "sure": (0.95, 3.0, True, -0.2),
    "unsure": (0.5, 3.0, True, -0.2),
    # A sure detection on a word that is said in many languages.
    "short": (0.99, 0.4, True, -0.2),
    # No language was likely, and the fallback was taken.
    "guess": (0.1, 3.0, True, -0.2),
    "expected": (1.0, 3.0, False, -0.2),
    "unlikely": (1.0, 3.0, False, DOUBTFUL_LOGPROB - 0.1),
}
ENOUGH = "expected en, " * CONFIRM_EVERY


def recognise(languages: SpeakerLanguages, user_id: int, history: str) -> None:
    """Let somebody say what is listed, such as 'sure en, expected en'."""
    for word, language in (said.split() for said in history.split(", ") if said):
        probability, speech_s, detected, logprob = RECOGNISED[word]
        languages.observed(
            user_id, language, probability=probability, speech_s=speech_s, detected=detected, mean_logprob=logprob
        )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", None),
        ("sure en", "en"),
        # One unsure detection settles nothing; the same language twice in a row does.
        ("unsure cy", None),
        ("unsure cy, unsure en", None),
        ("unsure cy, unsure en, unsure en", "en"),
        ("short de", None),
        ("guess en, guess en", None),
        ("guess en, guess en, sure de", "de"),
        # After twenty utterances it is detected again, and the same result settles it for another twenty.
        ("sure en, " + ENOUGH.removesuffix("expected en, "), "en"),
        ("sure en, " + ENOUGH, None),
        ("sure en, " + ENOUGH + "unsure en", "en"),
        # The first contradiction causes another detection, and the second one changes the language.
        ("sure en, " + ENOUGH + "sure fr", None),
        ("sure en, " + ENOUGH + "sure fr, sure fr", "fr"),
        # An unlikely text calls for a confirmation, so that who goes on in another language is followed at once.
        ("sure en, unlikely en", None),
        ("sure en, unlikely en, sure de", None),
        ("sure en, unlikely en, sure de, sure de", "de"),
    ],
)
def test_what_is_expected_next(history: str, expected: str | None) -> None:
    """Of this person. The others keep their language."""
    languages = SpeakerLanguages()
    recognise(languages, BEN, "sure it")
    recognise(languages, ADA, history)
    assert expected_language(languages.hint(ADA, speech_s=3.0)) == expected
    assert languages.hint(BEN, speech_s=3.0) == UsualLanguage("it")
    assert expected is None or languages.of(ADA) == expected


def test_a_fixed_language_is_everybodys() -> None:
    """The language of the settings overrides every detection."""
    languages = SpeakerLanguages(lambda: ("de",))
    recognise(languages, ADA, "sure en")
    assert languages.hint(ADA, speech_s=3.0) == "de"


def test_a_settled_language_that_is_no_longer_spoken_is_detected_anew() -> None:
    """A server may narrow its languages while people talk, and may take that back."""
    among: list[str] = []
    languages = SpeakerLanguages(lambda: tuple(among))
    recognise(languages, ADA, "sure fr")
    among += ["en", "de"]
    assert languages.hint(ADA, speech_s=3.0) == ("en", "de")
    among.clear()
    assert languages.hint(ADA, speech_s=3.0) == UsualLanguage("fr")


def test_who_left_is_forgotten() -> None:
    """A person's language is forgotten when they leave, so a room does not remember thousands of visitors."""
    languages = SpeakerLanguages()
    recognise(languages, ADA, "sure en")
    languages.forget(ADA)
    languages.forget(ADA)
    assert languages.hint(ADA, speech_s=3.0) is None
