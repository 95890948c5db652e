"""The words that search looks past, the number words and the stemmers of the known languages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from snowballstemmer.arabic_stemmer import ArabicStemmer
from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.german_stemmer import GermanStemmer
from snowballstemmer.russian_stemmer import RussianStemmer

from compaction.language.text import script_of
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# More words tell nothing new of a text's language.
_WORDS = 200
# Of these scripts words are stemmed whatever the language of a text: that of most who write them.
_OF_SCRIPTS: Mapping[str, Callable[[], WordStemmer]] = {"ARABIC": ArabicStemmer, "CYRILLIC": RussianStemmer}


class WordStemmer(Protocol):
    """A Snowball stemmer."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - the name is snowballstemmer's
        """Return the stem of a lower-case word."""


@dataclass(frozen=True)
class Language:
    """One language. `stopwords` carry no meaning. `light` words are too common to search for. `first_person`: those by
    which people speak of themselves. `numbers`: number words with their digits. `calendar`: days of the week and
    months. `has_capital_nouns`: all nouns are written with a capital, not only names.
    """

    code: str
    stemmer: Callable[[], WordStemmer]
    stopwords: frozenset[str]
    light: frozenset[str]
    first_person: frozenset[str]
    numbers: Mapping[str, str]
    calendar: frozenset[str]
    has_capital_nouns: bool = False

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Return the words that tell the language of a text."""
        return self.stopwords | self.light | self.numbers.keys()

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word with straight apostrophes, without its possessive ending."""
        bare = word.removesuffix("'s").removesuffix("'")
        if not bare.isalpha():
            return bare
        return _stemmed(_OF_SCRIPTS.get(script_of(bare[0]), self.stemmer), bare)


@sentence_cache(most=8_192)
def _stemmed(stemmer: Callable[[], WordStemmer], word: str) -> str:
    """Return the stem of a word. Each reply needs those of its whole window again. A stemmer keeps the word at hand in
    itself, so threads must not share one.
    """
    return stemmer().stemWord(word)


def language_of(words: Sequence[str]) -> Language:
    """Return the language that has most of these lower-case words among its stop words and numbers."""
    return max(LANGUAGES, key=lambda each: sum(word in each.vocabulary for word in words[:_WORDS]))


def _word_set(listed: str) -> frozenset[str]:
    """Return the words as `text.words` yields them: 'weiß' is 'weiss'."""
    return frozenset(listed.casefold().split())


def _number_words(listed: str, *, joint: str = "") -> dict[str, str]:
    """Return number words with their digits, which stand before them. `joint`: 'und' in 'fünfundzwanzig'."""
    found: dict[str, str] = {}
    value = ""
    for word in listed.casefold().split():
        if word.isdigit():
            value = word
        else:
            found[word] = value
    if joint:
        units = {word: int(value) for word, value in found.items() if int(value) < 10}
        tens = {word: int(value) for word, value in found.items() if int(value) in range(20, 100, 10)}
        found |= {f"{unit}{joint}{ten}": str(one + more) for unit, one in units.items() for ten, more in tens.items()}
    return found


ENGLISH = Language(
    code="en",
    stemmer=EnglishStemmer,
    stopwords=_word_set("""
        a about sorry above actually after again ah all almost already also although always am an and another any
        anybody anyone anything are aren't around as at away back be because been before being both but by can can't
        cannot could couldn't did didn't do does doesn't doing don't done down each either else er even ever every
        everybody everyone everything few for from gonna got had hadn't has hasn't have haven't having he he'd he'll
        he's her here hers herself ha haha hahaha hey hi him himself his hm hmm how i i'd i'll i'm i've if in indeed
        instead into is isn't it it'd it'll it's its itself just kind kinda let let's like lmao lol lot lots many
        may maybe me might mine more most much must my myself neither no nobody none nor not nothing now of off oh
        ok okay on once one only onto or other our ours ourselves out over own per perhaps please pretty quite
        rather really right same she she'd she'll she's should shouldn't since so some somebody someone something
        sort still such sure than thank thanks that that'd that'll that's the their theirs them themselves then
        there there's these they they'd they'll they're they've thing things this those though through thus till to
        too totally true uh um under until up upon us very wanna was wasn't way we we'd we'll we're we've well were
        weren't what what's when where whether which while who who's whom whose why will with within without won't
        would wouldn't wow yay yeah yep yes yet you you'd you'll you're you've your yours yourself"""),
    light=_word_set("""
        came come comes get gets getting go goes going gone know made make makes mean put said saw say says see seem
        seems take think try want wants went"""),
    first_person=_word_set("i i'd i'll i'm i've me mine my myself"),
    numbers=_number_words("""
        0 zero nought 1 one first 2 two second twice 3 three third 4 four fourth 5 five fifth 6 six sixth 7 seven
        seventh 8 eight eighth 9 nine ninth 10 ten tenth tenner 11 eleven eleventh 12 twelve twelfth dozen 13
        thirteen thirteenth 14 fourteen fourteenth 15 fifteen fifteenth 16 sixteen sixteenth 17 seventeen
        seventeenth 18 eighteen eighteenth 19 nineteen nineteenth 20 twenty twentieth 30 thirty thirtieth 40 forty
        fortieth 50 fifty fiftieth 60 sixty sixtieth 70 seventy seventieth 80 eighty eightieth 90 ninety ninetieth
        100 hundred hundredth 1000 thousand 1000000 million"""),
    calendar=_word_set("""
        monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
        september october november december"""),
)
GERMAN = Language(
    code="de",
    stemmer=GermanStemmer,
    stopwords=_word_set("""
        aber ach äh ähm alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin
        bis bist bisschen da dabei dafür dagegen damit danach dann daran darauf darin darum das dass davon dazu dein
        deine deinen deiner dem den denn der des dessen deshalb dich die dies diese diesem diesen dieser dieses dir
        doch dort drauf du durch eben echt eh ein eine einem einen einer eines einfach einmal er erst es etwas euch
        euer eure eurem euren für ganz gar gegen genau gerade gern gibt habe haben habt hast hat hatte hatten
        hättest hätte her hey hier hin hm ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins irgendwas
        irgendwie ist ja jede jedem jeden jeder jedes jemand jene jetzt kann kannst kein keine keinem keinen keiner
        könnte könnten können könnt lieber mal man mein meine meinem meinen meiner mich mir mit muss musst müssen na
        nach nee nein nicht nichts nie niemand noch nun nur ob oder oh ohne okay ok paar schon sehr sei sein seine
        seinem seinen seiner seit selbst sich sie sind so sogar soll sollen sollte sollten sondern sonst soviel
        übrigens um und uns unser unsere unserem unseren unter viel viele vielleicht vom von vor wann war waren
        warst warum was weil welche welcher welches wem wen wenig wenn wer werde werden wessen wie wieder will
        willst wir wird wirst wo wohl wollen wollte worden wurde wurden würde würden zu zum zur zwar zwischen über"""),
    light=_word_set("""
        geht gehen gehst ging gemacht gesagt geworden komme kommen kommst kommt kam mache machen macht nehme nehmen
        nimmt sage sagen sagt sagte sehe sehen sieht glaube glauben denke denken erinnerst meine weiß weißt wissen tun
        tut"""),
    first_person=_word_set("ich mein meine meinem meinen meiner mich mir"),
    numbers=_number_words(
        """
        0 null 1 ein eins erste ersten erster erstes 2 zwei zweite zweiten zweimal 3 drei dritte dritten 4 vier
        vierte vierten 5 fünf fünfte fünften 6 sechs sechste sechsten 7 sieben siebte siebten 8 acht achte achten 9
        neun neunte neunten 10 zehn zehnte zehnten zehner 11 elf elfte elften 12 zwölf zwölfte zwölften dutzend 13
        dreizehn 14 vierzehn 15 fünfzehn 16 sechzehn 17 siebzehn 18 achtzehn 19 neunzehn 20 zwanzig zwanzigste
        zwanzigsten 30 dreißig 40 vierzig 50 fünfzig 60 sechzig 70 siebzig 80 achtzig 90 neunzig 100
        hundert 1000 tausend 1000000 million millionen""",
        joint="und",
    ),
    calendar=_word_set("""
        montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag januar februar märz april mai juni juli
        august september oktober november dezember"""),
    has_capital_nouns=True,
)
# The first is taken if the words of a text tell nothing.
LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)
