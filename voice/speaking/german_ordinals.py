"""Tells whether a German full stop makes a number an ordinal ('am 3. Mai') or ends its sentence, and how it ends. Pure.

Where to cut a reply and how to read its numbers is decided by the same rules. When in doubt the sentence ends, because
two joined sentences sound worse than a pause. Other languages are cut here too, so that 'I am 25.' must stay a
sentence.
"""

from __future__ import annotations

import re

MONTHS = (
    "Januar", "Februar", "März", "April", "Mai", "Juni",
    "Juli", "August", "September", "Oktober", "November", "Dezember",
)  # fmt: skip


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


# Before an ordinal, whatever its noun is. With them it ends in '-e' and '-en'.
_BEFORE_E = _words("die das jede jedes diese dieses eine seine ihre meine deine unsere")
_BEFORE_EN = _words(
    "am im den dem des zum zur vom beim jeden jedem diesen diesem einen einem einer eines seinen seinem seiner ihren"
    " ihrem ihrer meinen meinem meiner deinen deinem deiner unseren unserem unserer"
)
# With these the ending depends on the gender of the noun, or on the case.
_BEFORE_ER_OR_ES = _words("ein sein ihr mein dein unser kein")
_BEFORE_E_OR_EN = _words("der jeder dieser")
_DETERMINERS = _BEFORE_E | _BEFORE_EN | _BEFORE_ER_OR_ES | _BEFORE_E_OR_EN
# These stand before plain numbers as well: 'von 1 bis 10.', '4 oder 5.'
_PREPOSITIONS = _words("bis ab seit")
_WEEKDAYS = _words("montag dienstag mittwoch donnerstag freitag samstag sonntag")
_BEFORE_NUMBERS = _PREPOSITIONS | _WEEKDAYS | {"und", "oder"}

# With a capital letter these begin a sentence. No noun is written like them.
_OPENERS = _words(
    "der die das den dem des ein eine einen einem einer ich du er sie es wir ihr man mir mich dir dich uns euch ihm ihn"
    " ihnen mein meine dein deine sein seine ihre unser unsere euer eure dies diese dieser dieses jede jeder jedes kein"
    " keine keiner alle alles viele manche beide beides etwas nichts jemand niemand wer was wen wem wo wann warum wieso"
    " weshalb wie wohin woher welche welcher welches und oder aber doch denn sondern also auch dann danach davor dabei"
    " dazu dafür damit dadurch daher darum deshalb deswegen da dort hier heute gestern jetzt nun bald gleich später"
    " früher zuerst zuletzt schließlich trotzdem außerdem allerdings jedoch eigentlich übrigens insgesamt ja nein nö"
    " genau gut schön super toll prima klar stimmt richtig falsch okay ok danke bitte leider vielleicht natürlich"
    " sicher bestimmt wahrscheinlich hoffentlich ungefähr etwa mehr weniger nicht nur noch schon sehr so sonst somit"
    " immer oft manchmal meistens nie gern gerne weil wenn ob als falls obwohl sobald solange während bevor nachdem in"
    " im an am auf aus bei beim bis für mit nach seit über um unter von vom vor zu zum zur zwischen ohne gegen durch"
    " wegen trotz ab ist sind war hat hast habe haben bist bin wird willst will möchtest magst kannst kann könnt soll"
    " sollen weißt wisst meinst glaubst brauchst passt reicht geht sag schau hm hmm ach oh na tja wow"
    " viel vielen tschüss hallo hey herzlich herzlichen glückwunsch bravo perfekt wunderbar schade sorry entschuldigung"
    " guten gute ganz eher fast frag nimm probier warte komm denk lass hör gib gibt wäre würdest hättest darf dürfen"
    " wollen wollt sollten können könnten welch willkommen"
    " i you he she it we they my your his her our their the a an this that these those what how who when where why"
    " which is are was do does did can and but so or if then yes no not now there here"
)
# Words of an English sentence that no German sentence has.
_ENGLISH = _words("i you he she we they is are my your his this that have has")

# The genders of nouns that are counted often, by their ends: 'Geburtstag' ends like 'Tag'.
_MASCULINE = re.compile(
    r".*(?:tag|abend|monat|platz|versuch|mann|sohn|film|(?<!ur)teil|schritt|punkt|gang|stock|krieg|sieg|abschnitt|gast|fall"
    r"|grund|anlauf|satz|spieler|rang|könig|hund|bruder|job|zug)"
)
_NEUTER = re.compile(
    r".*(?:kind|mal|jahr|jahrhundert|jahrtausend|jahrzehnt|quartal|buch|spiel|haus|album|lied|semester|kapitel|treffen"
    r"|viertel|drittel|stockwerk|geschoss|bier|auto|tier)"
)
_FEMININE = re.compile(
    r".*(?:woche|liga|runde|klasse|etage|stunde|minute|sekunde|staffel|seite|stelle|folge|zeile|reihe|frage|person|stufe"
    r"|schicht|hälfte|nacht|auflage|ausgabe|welle|position|(?<!spr)(?<!schw)ung|heit|keit|schaft|tion|sion|tät)"
)
# After these 'der' is a dative or genitive, and after those a nominative.
_BEFORE_DATIVE = _words(
    "in an auf mit bei von zu nach aus seit vor hinter unter über während trotz wegen ab bis anfang mitte ende beginn"
    " laufe verlauf"
)
_BEFORE_NOMINATIVE = _words("ist war wird bin bist bleibt heute morgen dass ob wenn weil als wo wie")

_OPENING_MARKS = "(\"'“„*_"
_NUMBER = re.compile(r"\d{1,2}|(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])|[IVX]{2,5}")
_DAY = re.compile(r"\d{1,2}\.")
_NEXT_WORD = re.compile(rf"\s*[{re.escape(_OPENING_MARKS)}]*([^\W\d_]*)")
# An ordinal before 'und': 'vom 3. bis 5.', 'am 3. Mai und 4. Juni'.
_EARLIER = re.compile(rf"(?<![\w.,])\d{{1,2}}(?=\.(?:\s?\d{{1,2}}\.)?(?:\s(?:{'|'.join(MONTHS)}))?(?:\s\d{{4}})?,?\Z)")


def is_ordinal(before: str, following: str, *, complete: bool = True) -> bool | None:
    """Return whether a full stop makes the number in front of it an ordinal. If not, it ends the sentence.

    `before`: the text up to the full stop, without it. `following`: the text after it. `complete`: False while the
    text may go on with further letters. The result is None if they decide.
    """
    words = before.rsplit(None, 2)
    if len(words) < 2 or not _NUMBER.fullmatch(words[-1].lstrip(_OPENING_MARKS)):
        return False
    if _DAY.fullmatch(words[-2]):
        # 'am 3. 5.': a day and a month.
        return is_ordinal(_without(before, 1)[:-1], following, complete=complete)
    determiner = _bare(words[-2])
    if determiner not in _DETERMINERS and determiner not in _BEFORE_NUMBERS:
        return False
    gap = following[: len(following) - len(following.lstrip())]
    found = _NEXT_WORD.match(following)
    if "\n" in gap or found is None:
        return False
    if found.end() == len(following) and not complete:
        return None
    word = found[1]
    if word in MONTHS:
        return not _is_english(before)
    if not following.strip() or (word[:1].isupper() and word.lower() in _OPENERS):
        return False
    if determiner in _BEFORE_NUMBERS:
        return words[-2].islower() and _EARLIER.search(_without(before, 2)) is not None
    return not _is_english(before)


def ordinal_ending(before: str, following: str) -> str | None:
    """Return how the ordinal at the end of `before` ends: 'e', 'en', 'er' or 'es'. None if that is not sure.

    `before`, `following`: as for `is_ordinal`, which is true for them.
    """
    words = before.rsplit(None, 3)
    determiner, earlier = _bare(words[-2]), words[-3] if len(words) > 2 else ""
    found = _NEXT_WORD.match(following)
    noun = found[1] if found else ""
    if determiner in ("und", "oder", "bis") and (former := _EARLIER.search(_without(before, 2))):
        # Both have the same case: 'die 1. und 2. Liga'.
        until = former.string[: former.end()]
        return ordinal_ending(until, following) if len(until.split()) > 1 else None
    if determiner in _BEFORE_EN or determiner in _PREPOSITIONS:
        return "en"
    if determiner in _BEFORE_E:
        return "e"
    if determiner in _BEFORE_E_OR_EN:
        return _ending_after_der("" if earlier.endswith(tuple(",.:;!?")) else _bare(earlier), noun)
    if determiner in _BEFORE_ER_OR_ES:
        return "er" if _is_masculine(noun) else "es" if _NEUTER.fullmatch(noun.lower()) else None
    return "er" if noun in MONTHS else None


def _ending_after_der(earlier: str, noun: str) -> str | None:
    """`earlier`: the word before 'der' in its clause, or nothing."""
    if _is_masculine(noun):
        return "e"
    if _FEMININE.fullmatch(noun.lower()) or earlier in _BEFORE_DATIVE:
        return "en"
    if not earlier or earlier in _BEFORE_NOMINATIVE | _WEEKDAYS:
        return "e"
    return None


def _is_masculine(noun: str) -> bool:
    return noun in MONTHS or _MASCULINE.fullmatch(noun.lower()) is not None


def _is_english(text: str) -> bool:
    return not _ENGLISH.isdisjoint(map(_bare, text.split()))


def _bare(word: str) -> str:
    return word.lower().strip(f",{_OPENING_MARKS}")


def _without(text: str, words: int) -> str:
    """Return `text` without its last words."""
    return text.rsplit(None, words)[0] if len(text.split()) > words else ""
