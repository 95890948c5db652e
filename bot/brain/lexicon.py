"""Classes of English words: content words, question words, numbers, words of time and place. Pure."""

from __future__ import annotations

import itertools
import re

from compaction.language.languages import STOPWORDS, stem
from compaction.language.text import QUESTION_MARKS

# Thai, Lao, Burmese, Khmer, Japanese and Chinese are written without spaces.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
WORD = re.compile(r"\d+(?:[.:,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words, besides the stop words, that a question about earlier talk uses without naming its subject.
RECALL_WORDS = _set("ago earlier further mention remember remind talk tell told")
NUMBER_WORDS = _set(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half quarter dozen noon
    midnight first second third"""
)
# Irregular forms and synonyms. Each word of a line is compared as the line's first word.
_SAME_MEANING = {
    form: forms.split()[0]
    for forms in (
        "become became",
        "begin began begun start",
        "break broke broken",
        "bring brought",
        "build built",
        "buy bought",
        "call name",
        "catch caught",
        "child children kid",
        "choose chose chosen",
        "come came",
        "cost price paid pay",
        "cut cutting",
        "dad father",
        "drink drank drunk",
        "drive drove driven",
        "eat ate eaten",
        "fall fell fallen",
        "feel felt",
        "film movie",
        "find found",
        "fly flew flown",
        "forget forgot forgotten",
        "give gave given",
        "grow grew grown",
        "hear heard",
        "hide hid hidden",
        "hold held",
        "keep kept",
        "leave left",
        "lend lent",
        "like favourite favorite love",
        "lose lost",
        "make made",
        "meet met",
        "mum mom mother",
        "phone telephone mobile",
        "put putting",
        "ride rode ridden",
        "run ran",
        "see saw seen",
        "sell sold",
        "send sent",
        "sing sang sung",
        "sit sat",
        "sleep slept",
        "speak spoke spoken",
        "spend spent",
        "stand stood",
        "steal stole stolen",
        "swim swam swum",
        "take took taken",
        "teach taught",
        "throw threw thrown",
        "travel trip journey",
        "wear wore worn",
        "win won",
        "write wrote written",
    )
    for form in forms.split()
}
TIME_WORDS = _set(
    """monday tuesday wednesday thursday friday saturday sunday weekend january february march april june july august
    september october november december today tonight tomorrow yesterday morning afternoon evening night noon midnight
    o'clock week month year spring summer autumn winter christmas easter birthday"""
)
ASKING_WORDS = _set("who whom whose what which when where why how")
ASKING_VERBS = _set(
    """is are was were do does did can could will would should shall have has had may might isn't aren't wasn't
    weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't haven't hasn't hadn't"""
)
FILLERS = _set("and so but well okay ok hey please now then um uh")
# Requests, which end without a question mark.
REQUESTS = frozenset({"tell me", "tell us", "remind me", "remind us", "let's hear", "say what", "say who"})
PLACE_WORDS = _set("in at on near under behind inside beside by beneath above below between")


def words_of(text: str) -> list[str]:
    """Return the words and numbers of `text` in lower case, in order."""
    return [word.casefold().replace("’", "'") for word in WORD.findall(text)]


def tells_a_time(text: str) -> bool:
    """Return whether `text` names a time: a day, a season, or a number after a word like 'at'."""
    words = words_of(text)
    if TIME_WORDS & set(words):
        return True
    after = {"at", "by", "in", "on", "until", "till", "since", "before", "after", "past", "the"}
    return any(
        before in after and (word in NUMBER_WORDS or word[0].isdigit()) for before, word in itertools.pairwise(words)
    )


def content_stems(text: str) -> frozenset[str]:
    return frozenset(meaning_stem(word) for word in words_of(text) if not is_empty(word))


def is_empty(word: str) -> bool:
    """Return whether a lower-case word says nothing about the subject of a question."""
    # A stop word with a meaning of its own is kept: 'What does Ada like?' asks what she loves.
    return word in RECALL_WORDS or (word in STOPWORDS and word not in _SAME_MEANING)


def is_question(text: str) -> bool:
    """Return whether `text` is a question, with or without a question mark: recognisers often lose it."""
    stripped = text.strip()
    if stripped.endswith(QUESTION_MARKS):
        return True
    words = words_of(stripped)[:6]
    if not words:
        return False
    # 'So what time …': skip a filler before the asking word.
    opening = words[1:] if words[0] in FILLERS else words
    if not opening:
        return False
    if opening[0] in ASKING_VERBS or " ".join(opening[:2]) in REQUESTS:
        return True
    if opening[0].endswith("'s") and opening[0].removesuffix("'s") in ASKING_WORDS:
        return True
    return opening[0] in ASKING_WORDS and len(opening) > 1 and not _tells_after_asking_word(opening)


def _tells_after_asking_word(words: list[str]) -> bool:
    """Return whether an opening asking word begins a statement ('When I was young …', 'What I want is …')."""
    return words[1] in {"i", "we", "you", "he", "she", "they", "it", "the", "a", "my", "our"} and words[0] != "how"


def meaning_stem(word: str) -> str:
    """Return the stem of a word, the same for its irregular forms, its commonest synonyms and American spelling.

    `word`: lower case, with straight apostrophes.
    """
    bare = word.removesuffix("'s").replace("'", "")
    stemmed = stem(_SAME_MEANING.get(bare) or _SAME_MEANING.get(bare.removesuffix("s")) or bare)
    # 'Colour', 'neighbour': recognisers use both spellings.
    return f"{stemmed[:-3]}or" if stemmed.endswith("our") and len(stemmed) > 4 else stemmed
