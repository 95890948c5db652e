"""Replaces numbers and signs by German words: '5 %' becomes '5 Prozent', and '21:04' '21 Uhr 4'. Pure.

German writes a comma in decimals, dots between thousands, and a full stop after ordinals. German voices read '3,5' as
people do, but '3.' before a capital letter as the end of a sentence.

Whether a full stop makes a number an ordinal ('am 3. Mai') or ends its sentence decides also where a reply is cut. When
in doubt the sentence ends, because two joined sentences sound worse than a pause. Other languages are cut here too, so
that 'I am 25.' must stay a sentence.
"""

from __future__ import annotations

import re

from voice.speaking.sign_rules import SignRule, SignWords, sign_rules

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
_ORDINAL = re.compile(r"\d{1,2}|(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])|[IVX]{2,5}")
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
    if len(words) < 2 or not _ORDINAL.fullmatch(words[-1].lstrip(_OPENING_MARKS)):
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


_ORDINALS = (
    "", "erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt", "elft", "zwölft",
    "dreizehnt", "vierzehnt", "fünfzehnt", "sechzehnt", "siebzehnt", "achtzehnt", "neunzehnt",
)  # fmt: skip
_ONES = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
_MONEY = {"$": "Dollar", "€": "Euro", "£": "Pfund", "¥": "Yen"}
_UNITS = {
    "km/h": "Kilometer pro Stunde", "km": "Kilometer", "cm": "Zentimeter", "mm": "Millimeter", "kg": "Kilogramm",
    "mg": "Milligramm", "ml": "Milliliter", "kB": "Kilobyte", "KB": "Kilobyte", "MB": "Megabyte", "GB": "Gigabyte",
    "TB": "Terabyte", "ms": "Millisekunden", "kHz": "Kilohertz", "MHz": "Megahertz", "GHz": "Gigahertz",
    "fps": "Bilder pro Sekunde", "m/s": "Meter pro Sekunde", "Mbit/s": "Megabit pro Sekunde",
    "Gbit/s": "Gigabit pro Sekunde", "°": "Grad", "°C": "Grad Celsius", "° C": "Grad Celsius",
    "°F": "Grad Fahrenheit", "° F": "Grad Fahrenheit",
}  # fmt: skip
# Written without spaces here: 'z. B.' is the same as 'z.B.'.
_SHORT = {
    "z.b.": "zum Beispiel", "d.h.": "das heißt", "u.a.": "unter anderem", "usw.": "und so weiter",
    "bzw.": "beziehungsweise", "ca.": "circa", "evtl.": "eventuell", "ggf.": "gegebenenfalls", "inkl.": "inklusive",
    "nr.": "Nummer", "mio.": "Millionen", "mrd.": "Milliarden",
}  # fmt: skip

_WORDS = SignWords(
    decimal=",", at="ät", dot="Punkt", percent="Prozent", per="pro", to="bis", out_of="von",
    minus="minus", about="etwa", number="Nummer", power="hoch", and_or=("und", "oder"),
    scales=("Millionen", "Milliarden"), money=_MONEY.values(),
    units=_UNITS,
    one_unit=_UNITS | {"ms": "Millisekunde", "fps": "Bild pro Sekunde"},
    units_behind_per={"s": "Sekunde", "min": "Minute", "h": "Stunde", "l": "Liter"},
    fractions={
        "1/2": "ein halb", "1/3": "ein Drittel", "2/3": "zwei Drittel", "1/4": "ein Viertel", "3/4": "drei Viertel",
    },
    signs={
        "+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch", "±": "plus minus", "≈": "ungefähr",
        "≥": "mindestens", "≤": "höchstens", "≠": "ungleich", "<": "kleiner als", ">": "größer als", "→": "zu",
        "&": "und",
    },
)  # fmt: skip
_NUMBER = r"\d+(?:[.,]\d+)*"


def _date(day: str, month: str, year: str, written: str) -> str:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return written
    return f"{int(day)}. {MONTHS[int(month) - 1]} {year}"


def _ordinal(number: str, ending: str) -> str:
    tens, ones = divmod(int(number), 10)
    if tens < 2:
        return f"{_ORDINALS[int(number)]}{ending}" if int(number) else f"nullt{ending}"
    return f"{_ONES[ones]}{'und' if ones else ''}{_TENS[tens]}st{ending}"


def _ordinal_in_sentence(found: re.Match[str]) -> str:
    before, following = found.string[: found.end() - 1], found.string[found.end() :]
    ending = ordinal_ending(before, following) if is_ordinal(before, following) else None
    return _ordinal(found[0][:-1], ending) if ending else found[0]


def _day_in_sentence(found: re.Match[str]) -> str:
    before, following = found.string[: found.end() - 1], found.string[found.end() :]
    if not is_ordinal(before, following):
        return found[0]
    date = _date(found[1], found[2], "", found[0])
    return date.rstrip()


def _clock(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if hour > 24 or minute > 59:
        return f"{found[1]} zu {found[2]}"
    return f"{hour} Uhr {minute}" if minute else f"{hour} Uhr"


def _money(sign: str, amount: str) -> str:
    whole, _, cents = amount.partition(",")
    # '3,50 €' is read as '3 Euro 50'; '2,5 €' is not.
    if len(cents) != 2 or not whole.isdigit():
        return f"{amount} {_MONEY[sign]}"
    return f"{whole} {_MONEY[sign]}" + ("" if cents == "00" else f" {int(cents)}")


# The order matters: longer patterns come before patterns that match a part of them.
RULES: tuple[SignRule, ...] = (
    (re.compile(r"(?<!\w)(?:z\. ?B|d\. ?h|u\. ?a|usw|bzw|ca|evtl|ggf|inkl|nr|mio|mrd)\.", re.IGNORECASE),
     lambda m: _SHORT[m[0].lower().replace(" ", "")]),
    (re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])"), lambda m: _date(m[3], m[2], m[1], m[0])),
    (re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)"), lambda m: _date(m[1], m[2], m[3], m[0])),
    (re.compile(r"(?<![\w.,])(\d{1,2})\.\s?(\d{1,2})\.(?= [^\W\d_])"), _day_in_sentence),
    (re.compile(r"(?<![\w.,])\d{1,2}\.(?= [^\W\d_])"), _ordinal_in_sentence),
    (re.compile(rf"(?<![\w.,])(\d{{1,2}})\.(?= (?:{'|'.join(MONTHS)})\b)"), lambda m: _ordinal(m[1], "er")),
    (re.compile(r"(?<![\d:])(\d{1,2}:\d{2}(?::\d{2})?(?:\s?Uhr)?)\s?[-–]\s?(?=\d{1,2}(?![\d-]))"),
     lambda m: f"{m[1]} bis "),
    (re.compile(r"(?<![\d.])(\d{1,2}\.\d{2})(?:\s?Uhr)?\s?[-–]\s?(?=\d{1,2}\.\d{2}\s?Uhr\b)"),
     lambda m: f"{m[1]} Uhr bis "),
    (re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?:\s?Uhr\b)?(?![\d:])"), _clock),
    (re.compile(r"(?<![\d.])(\d{1,2})\.(\d{2})\s?Uhr\b"), _clock),
    (re.compile(r"(?<=\d):(?=\d)"), lambda _: " zu "),
    (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{3})+(?!\d|\.\d)"), lambda m: m[0].replace(".", "")),
    (re.compile(rf"([$€£¥])\s?({_NUMBER})"), lambda m: _money(m[1], m[2])),
    (re.compile(rf"({_NUMBER})\s?([$€£¥])"), lambda m: _money(m[2], m[1])),
    (re.compile(r"\s?([$€£¥])"), lambda m: f" {_MONEY[m[1]]}"),
    (re.compile(r"§+\s?(?=\d)"), lambda _: "Paragraf "),
    *sign_rules(_WORDS),
)  # fmt: skip
