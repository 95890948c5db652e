"""Classifies words that are said over the bot: a backchannel, an interruption, or a request to stop. Pure.

A listener's 'mm-hm', a laugh or a cough is a backchannel: the bot continues to speak. The lists cover seven languages;
all other words count as an interruption.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from itertools import groupby, islice

from voice.asr.sound_effect import is_sound_effect

# Listeners say these words alone or a few together. 'No' and 'what' are not in the list because they are objections.
_BACKCHANNELS = frozenset(
    {
        "mm", "mmm", "mhm", "mmhm", "mmhmm", "mhmm", "hm", "hmm", "hmmm", "uh", "um", "uhm", "huh", "uhhuh", "ah",
        "aah", "aha", "ahh", "oh", "ooh", "oooh", "wow", "yeah", "yea", "yep", "yup", "yes", "ya", "ja", "si",
        "oui", "okay", "ok", "kay", "right", "sure", "true", "exactly", "totally", "nice", "cool", "great", "lol",
        "ha", "hee", "ho", "heh", "phew", "ugh", "oof", "tsk", "ew", "eww", "aww", "awww", "yay", "gotcha",
        "indeed", "interesting", "really", "good", "fine",
        "genau", "stimmt", "klar", "achso", "ach", "gut", "super", "jaja",
        "ouais", "voilà", "exactement", "bien",
        "sí", "claro", "vale", "ajá", "exacto", "bueno",
        "sì", "certo", "già", "esatto", "bene", "ecco",
        "sim", "pois", "isso", "precies", "klopt", "oké", "goed",
    }
)  # fmt: skip
_LAUGH = re.compile(r"[bw]?(?:h+[aeiou]+){2,}h*|x+d+")
_MOST_WORDS = 4
_PHRASES = frozenset(
    {
        "i see", "i know", "of course", "for sure", "got it", "makes sense", "that's right", "that's true", "oh really",
        "no way", "oh my god", "oh my", "fair enough", "uh huh", "mm hm", "mm hmm", "all right", "alright", "very nice",
        "ach so", "na klar", "ja genau", "sehr gut", "alles klar",
        "d'accord", "bien sûr", "je vois", "c'est vrai", "ah bon",
        "por supuesto", "es verdad", "muy bien", "ya veo", "de acuerdo",
        "va bene", "d'accordo", "ho capito", "è vero", "molto bene",
        "está bem", "é verdade", "muito bem", "com certeza",
        "dat klopt", "heel goed", "natuurlijk",
    }
)  # fmt: skip
_STOPS = frozenset(
    {
        "stop", "stop it", "stop talking", "stop please", "please stop", "shut up", "be quiet", "quiet", "silence",
        "enough", "that's enough", "okay stop", "ok stop", "hold on", "wait", "hush", "shush", "shh",
        "sh", "no stop", "pause", "please be quiet", "oh shut up",
        "warte", "warte mal", "moment", "moment mal", "sei still", "sei ruhig", "ruhe", "hör auf", "halt", "psst",
        "stopp",
        "attends", "arrête", "tais toi", "chut", "un instant",
        "espera", "espera un momento", "cállate", "silencio", "basta",
        "aspetta", "aspetta un attimo", "zitto", "stai zitto", "silenzio",
        "espere", "cala a boca", "silêncio", "um momento",
        "wacht", "wacht even", "wees stil", "hou op", "stil",
    }
)  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LONGEST_PHRASE = max(_MOST_WORDS, *(len(_WORD.findall(phrase)) for phrase in _PHRASES | _STOPS))


class OverlapIntent(Enum):
    """What a person who speaks over the bot wants it to do."""

    CONTINUE = auto()  # go on speaking: a backchannel, a laugh, or no words at all
    YIELD = auto()  # stop, because they have something to say
    STOP = auto()  # fall silent, however short the words


def classify_overlap(text: str) -> OverlapIntent:
    """Classify `text`, which somebody said over the bot. The caller has removed the bot's name."""
    # One word more than any phrase has tells enough of a long text.
    heard = islice(_WORD.finditer(text), _LONGEST_PHRASE + 1)
    words = [word.group().casefold().replace("’", "'") for word in heard]
    if not words or is_sound_effect(text):
        return OverlapIntent.CONTINUE
    phrase = " ".join(words)
    # 'Stop, stop, stop!' says no more than 'Stop!'.
    if " ".join(word for word, _ in groupby(words)) in _STOPS:
        return OverlapIntent.STOP
    if phrase in _PHRASES:
        return OverlapIntent.CONTINUE
    if len(words) <= _MOST_WORDS and all(word in _BACKCHANNELS or _LAUGH.fullmatch(word) for word in words):
        return OverlapIntent.CONTINUE
    return OverlapIntent.YIELD
