"""Recognises spoken requests to be silent for now, or to talk again, in seven languages. Pure.

A silence request keeps the bot silent until somebody lets it talk again. So only unambiguous phrases count, and the
caller checks that they address the bot: over a reply, a 'stop' of anybody but who is answered only ends that reply
(barge-in). 'Not now' is no request, but a no to the bot's own question.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# How long is left open, so it says no more than 'for a while'.
_SOME_TIME = re.compile(
    r"\b(?:(?:another |next )?(?:few|several)(?: more)? (?:minutes|hours)(?: longer)?|(?:little |bit |while )+longer"
    r"|(?:noch (?:die nächsten |ein )?|(?:die )?nächsten (?:ein )?|ein )?paar (?:minuten|stunden)"
    r"|noch (?:eine weile|einen moment))\b"
)
# Words allowed around the request: 'oh please just shut up now, will you'. Spelled as the recogniser spells them.
_FILLERS_BY_LANGUAGE = {
    "en": (
        "please just now okay ok oh hey will you would could can for a while bit moment minute already and so then "
        "right thanks thank kindly god no the fuck hell today tonight again once more"
    ),
    "de": (
        "bitte jetzt mal doch endlich einfach für eine einen weile moment kurz heute du kannst könntest ach na so und"
    ),
    "fr": "s'il te plaît plait vous maintenant un une peu moment instant allez oh bon donc et peux tu pouvez pour",
    "es": "por favor ahora un una rato momento poco ya oye vale y puedes anda venga",
    "it": "per favore piacere ora adesso un una po' po attimo momento dai e puoi oh ti prego",
    "pt": "por favor agora um uma pouco momento já ai e pode podes tá vá lá",
    "nl": "alsjeblieft alstublieft nu even eens een tijdje moment nou toch maar kun je en hé",
}
_SILENCE_BY_LANGUAGE = {
    "en": (
        "shut up", "shut it", "be quiet", "quiet", "stay quiet", "keep quiet", "be silent", "stay silent", "silence",
        "stop", "stop it", "stop talking", "stop speaking", "hush", "shush", "shh", "shhh", "sh", "zip it", "stop that",
        "don't talk", "do not talk", "don't speak", "do not speak", "no talking", "mute yourself", "mute", "go mute",
        "stop stop", "stop stop stop", "shut your mouth", "not talk", "say nothing", "don't say anything",
    ),
    "de": (
        "sei still", "sei ruhig", "sei leise", "ruhe", "ruhig", "halt den mund", "halt die klappe", "klappe",
        "klappe halten", "mund halten", "die klappe halten", "den mund halten", "schweig", "hör auf",
        "hör auf zu reden", "sag nichts", "sag nichts mehr",
        "nicht reden", "nicht sprechen", "still sein", "ruhig sein", "leise sein", "psst", "pst", "stopp",
        "halt's maul", "halts maul", "halt das maul", "maul halten", "halt die schnauze", "schnauze", "halt die fresse",
        "halt den rand", "hör auf zu sprechen", "sei stumm",
    ),
    "fr": (
        "tais toi", "taisez vous", "silence", "chut", "ferme la", "la ferme", "arrête", "arrête de parler",
        "ne parle plus", "ne dis rien", "ne dis plus rien", "sois silencieux", "te taire", "arrêter de parler",
    ),
    "es": (
        "cállate", "callate", "cállese", "silencio", "cierra la boca", "cierra el pico", "deja de hablar", "no hables",
        "no digas nada", "guarda silencio", "callarte", "dejar de hablar", "chitón",
    ),
    "it": (
        "stai zitto", "stai zitta", "sta' zitto", "zitto", "zitta", "silenzio", "fai silenzio", "taci", "smettila",
        "smetti di parlare", "non parlare", "non dire niente", "stare zitto", "chiudi la bocca",
    ),
    "pt": (
        "cala a boca", "cale a boca", "cala te", "calado", "silêncio", "fica quieto", "fique quieto", "pare de falar",
        "para de falar", "não fale", "não fales", "não diga nada", "ficar quieto", "fica calado",
    ),
    "nl": (
        "wees stil", "hou je mond", "houd je mond", "mond dicht", "stilte", "stop met praten", "niet praten",
        "zeg niks", "zeg niets", "zwijg", "stil zijn", "sst",
    ),
}  # fmt: skip
_TALK_BY_LANGUAGE = {
    "en": (
        "talk", "speak", "may talk", "may speak", "talk to us", "speak up", "unmute", "unmute yourself", "come back",
        "start talking", "be back", "join in", "are allowed to talk", "are allowed to speak",
    ),
    "de": (
        "du darfst wieder reden", "du darfst wieder sprechen", "wieder reden", "wieder sprechen", "darfst reden",
        "darfst sprechen", "rede wieder", "sprich wieder", "komm zurück",
    ),
    "fr": ("parle", "tu peux parler", "parle à nouveau", "tu peux reparler", "parlez", "reviens"),
    "es": ("puedes hablar", "habla", "habla otra vez", "puedes hablar otra vez", "puedes volver a hablar", "vuelve"),
    "it": ("parla", "puoi parlare", "puoi parlare di nuovo", "parla di nuovo", "torna"),
    "pt": ("pode falar", "podes falar", "fale de novo", "pode falar de novo", "volta a falar"),
    "nl": ("je mag weer praten", "praat weer", "mag weer praten", "je mag praten", "kom terug"),
}  # fmt: skip
_MOST_WORDS = 9


def _phrases(by_language: Mapping[str, Sequence[str]]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrases in by_language.values() for phrase in phrases)


# All languages at once: people mix them, and the recogniser does not always know which one it hears.
_FILLERS = frozenset(word for words in _FILLERS_BY_LANGUAGE.values() for word in words.split())
_SILENCE = _phrases(_SILENCE_BY_LANGUAGE)
_TALK = _phrases(_TALK_BY_LANGUAGE)


def asks_for_silence(text: str) -> bool:
    """Return whether `text` asks the bot to be silent: 'please be quiet for a while'. Strip the bot's name first."""
    return _contains_request(text, _SILENCE)


def asks_to_talk(text: str) -> bool:
    """Return whether `text` lets the bot talk again: 'you can talk again'. Strip the bot's name first."""
    return _contains_request(text, _TALK)


def _contains_request(text: str, phrases: Collection[Sequence[str]]) -> bool:
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    if not words or len(words) > _MOST_WORDS:
        return False
    words = _SOME_TIME.sub("", " ".join(words)).split()
    return any(_matches(words, phrase) for phrase in phrases)


def _matches(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether `words` are the phrase in order, apart from fillers around and between its words."""
    rest = iter(phrase)
    expected = next(rest, None)
    for word in words:
        if word == expected:
            expected = next(rest, None)
        elif word not in _FILLERS:
            return False
    return expected is None
