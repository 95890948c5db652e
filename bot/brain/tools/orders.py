"""Finds out whether somebody ordered a tool with effects. Pure, and sees nothing but the person's words.

What counts is the structure of what was said, clause by clause: an order is an imperative ('post the link'), or a
request to the bot ('could you …', 'I want you to …', 'kannst du … posten'). A question, a report, a negation, a
condition or somebody else's words are none, whatever nouns they hold. The order's verb and its object then choose the
tool. Where the structure or the tool is doubtful, the answer is `PERHAPS`, and the bot asks aloud first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

from bot.brain.tools import order_words
from compaction.sentence_cache import sentence_cache
from voice.asr.unspaced import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.brain.tools.tool import RoomTool


class Demand(Enum):
    """Whether the asker's words demand a tool."""

    ORDERED = auto()
    PERHAPS = auto()
    NOT = auto()


# How well an order fits a tool: whether by its very verb, and by how many of its nouns.
_Fit: TypeAlias = tuple[bool, int]


class _Kind(Enum):
    """What a clause does. A telling clause asks for words ('read the file')."""

    ORDER = auto()
    UNSURE = auto()
    TELLING = auto()
    STATEMENT = auto()


@dataclass(frozen=True, slots=True)
class _Clause:
    """`verb`: its verb of doing. `rest`: the other words. `mentions`: all its words. `requested`: an order in the form
    of a question. `fits`, `mentioned`: what was found about tools, by their words, since each is compared with all.
    """

    kind: _Kind
    verb: str = ""
    groups: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    requested: bool = False
    fits: dict[tuple[str, ...], _Fit | None] = field(default_factory=dict, init=False, compare=False, repr=False)
    mentioned: dict[tuple[str, ...], bool] = field(default_factory=dict, init=False, compare=False, repr=False)


_SENTENCE = re.compile(r"(?<=[.!?;…。！？])\s+|\n")
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_COMMA = re.compile(r"[,–—]\s|\s-\s")
# 'notes.txt' is a file, whatever it is called.
_FILE_NAME = re.compile(r"(?<![\w-])[\w-]+\.(?!\d+\b)[a-zA-Z0-9]{1,5}\b(?!\.\w)")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]*[\"”“»]")
# Phrases of several words that mean one, or nothing.
_PHRASES = (
    (re.compile(r"\bget rid of\b", re.IGNORECASE), "remove"),
    (re.compile(r"\bdo (?:me|us) a favou?r(?:,| and)?", re.IGNORECASE), "please"),
    (re.compile(r"\b(?:go ahead and|feel free to|be so kind (?:and|as to)|go and)\b", re.IGNORECASE), "please"),
    (re.compile(r"\bsei so (?:gut|nett|lieb) und\b", re.IGNORECASE), "bitte"),
)
_YOU_REQUEST = re.compile(
    r"(?:can|could|would|will) you (?:mind )?(?:(?:please|just|maybe|kindly|also|quickly|perhaps|now|then) )*"
)
_WANT_YOU = re.compile(
    r"(?:i|we)(?: would|'d)? (?:really )?(?:want|need|like|love) you (?:all )?(?:to )(?:(?:please|just|now) )*"
)
_DU_REQUEST = re.compile(r"(?:kannst|könntest|würdest|magst|möchtest) du ")
# Sentences about what the bot may do, or the wish for a result: not certain to be orders.
_MAYBE = re.compile(
    r"(?:you (?:can|could|should|may|must|do|need to)|(?:can|could|may) (?:we|somebody|someone|anybody|anyone)|let'?s?"
    r"|i'd like|i would like|i want|we want|i need|we need|du (?:kannst|könntest|sollst|solltest|musst|darfst)"
    r"|ich (?:will|möchte|hätte|brauche)|wir (?:wollen|möchten|brauchen)|kann(?:st)? (?:jemand|mal)|lass(?:t)? uns"
    r"|schickst|postest|spielst|machst|schreibst|stellst|löschst|speicherst)\b"
)
_POLITE_CONDITION = re.compile(
    r"\bif (?:you (?:could|can|would|will|don't mind|please|like)|possible|that's okay|it's okay)\b"
    r"|\bwenn (?:du (?:so (?:gut|nett|lieb)|kannst|könntest|magst)|möglich)\b"
)
_AS_SOON = re.compile(r"\b(?:as soon as|as long as|in case|by the time)\b")
_HABIT = re.compile(r"\bevery (?:day|night|evening|morning|week|time)\b|\bjede[nsr]? (?:tag|abend|morgen|woche|mal)\b")
_JOINING = re.compile(r"\s(?=(?:and|but|so|then|or|und|aber|dann|oder|sondern)\s)")
_AND = frozenset({"and", "or", "und", "oder"})
# With these a clause begins anew.
_TURNING = frozenset(["so", "but", "now", "then", "just", "please", "aber", "dann", "jetzt", "also", "bitte"])
# After these a question mark takes nothing back: 'post the link, will you?'
_TAGS = frozenset(
    tuple(tag.split()) for tag in ("will you", "would you", "can you", "ok", "okay", "please", "bitte", "ja")
)
_JOINTS = frozenset({(word,) for word in _AND})
_EITHER = frozenset({("or",), ("oder",)})
_EXPLAINING = frozenset({("that's",), ("that",), ("which",), ("das",)})
_BEING = frozenset({"is", "are", "was", "were", "ist", "sind", "war"})
# Words of this length or more name a tool also as the end of a compound.
_COMPOUND_CHARS = 4


def demand_for(tool: RoomTool, said: str, rivals: Iterable[RoomTool] = ()) -> Demand:
    """Return whether `said` demands `tool`. `rivals`: all tools with effects that could be meant instead.

    The bot's own name should be left out of `said`. Each sentence counts for itself.
    """
    clauses = _clauses(said)
    if clauses is None:
        # Neither English nor German.
        return Demand.PERHAPS
    others = [rival for rival in rivals if rival.name != tool.name]
    demand = Demand.NOT
    for clause in clauses:
        match clause.kind:
            case _Kind.ORDER:
                fit = _fit(tool, clause)
                if fit is not None and all(fit > (_fit(rival, clause) or (False, 0)) for rival in others):
                    return Demand.ORDERED
                if _mentions(tool, clause) or not any(_mentions(rival, clause) for rival in others):
                    # An order that means none of the tools, as far as its words tell, may mean any.
                    demand = Demand.PERHAPS
            case _Kind.UNSURE if _mentions(tool, clause):
                demand = Demand.PERHAPS
            case _:
                pass
    return demand


def says_yes(said: str, tool: RoomTool) -> bool:
    """Return whether `said` is nothing but a yes to the question whether to use `tool`: 'yes', 'sure, post it'."""
    if "?" in said:
        return False
    bare, phrases = order_words.GO_AHEAD.subn("", " ".join(_words(said)))
    words = bare.split()
    own = {word.casefold() for word in tool.words}
    agrees = phrases > 0 or any(word in order_words.YES for word in words)
    groups = _groups(own)
    return agrees and all(
        word in order_words.YES
        or word in order_words.BESIDE_YES
        or _names(word, own)
        or bool(order_words.verb_groups(word) & groups)
        for word in words
    )


def _fit(tool: RoomTool, clause: _Clause) -> _Fit | None:
    """Return how well the order fits `tool`, or None if it may not be meant."""
    if tool.words not in clause.fits:
        clause.fits[tool.words] = _fit_words(tool.words, clause)
    return clause.fits[tool.words]


def _fit_words(words: Iterable[str], clause: _Clause) -> _Fit | None:
    own = {word.casefold() for word in words}
    exact = _names(clause.verb, own)
    if not (exact or clause.groups & _groups(own)):
        return None
    named = sum(any(_names(word, {noun}) for word in clause.rest) for noun in own)
    # 'Post it.': the object was spoken of before.
    pointed = (
        exact
        and not order_words.PRONOUNS.isdisjoint(clause.rest)
        and all(word in order_words.POINTING for word in clause.rest)
    )
    return (exact, named) if named or pointed else None


def _mentions(tool: RoomTool, clause: _Clause) -> bool:
    if tool.words not in clause.mentioned:
        own = {word.casefold() for word in tool.words}
        groups = _groups(own)
        found = any(_names(word, own) or bool(_doing(word) & groups) for word in clause.mentions)
        clause.mentioned[tool.words] = found
    return clause.mentioned[tool.words]


def _groups(words: Iterable[str]) -> frozenset[str]:
    return frozenset(group for word in words for group in order_words.verb_groups(word))


def _doing(word: str) -> frozenset[str]:
    return order_words.verb_groups(word) | order_words.english_participle(word)


def _names(word: str, nouns: Iterable[str]) -> bool:
    """Return whether `word` is one of `nouns`, its plural, or a compound that ends with it ('email')."""
    return any(
        word in {noun, f"{noun}s", noun.removesuffix("s")} or (len(noun) >= _COMPOUND_CHARS and word.endswith(noun))
        for noun in nouns
    )


def _words(text: str) -> list[str]:
    return [token.casefold().replace("’", "'") for token in _TOKEN.findall(text)]


@sentence_cache(most=32)
def _clauses(said: str) -> tuple[_Clause, ...] | None:
    """Return the clauses of what was said, or None if its language is not known."""
    if not any(letter.isalnum() for letter in said):
        return ()
    for pattern, meaning in _PHRASES:
        said = pattern.sub(meaning, said)
    if not order_words.is_known_language(_words(said)) or re.search(f"[{UNSPACED}]", said):
        return None
    clauses: list[_Clause] = []
    reported = False
    for sentence in _SENTENCE.split(_FILE_NAME.sub("file", _QUOTED.sub(" quoted ", said))):
        words = _words(sentence)
        if not words:
            continue
        if reported or _is_conditional(words) or _is_reported(words):
            # 'Bob said. Post the link.': the recogniser sets full stops where people pause.
            reported = words[-1] in order_words.REPORTING
            continue
        clauses += _clauses_of(sentence)
    return tuple(clauses)


def _is_conditional(words: Sequence[str]) -> bool:
    text = " ".join(words)
    bare = _POLITE_CONDITION.sub("", text)
    return (
        not order_words.CONDITIONS.isdisjoint(bare.split())
        or words[0] in order_words.FIRST_CONDITIONS
        or _AS_SOON.search(bare) is not None
    )


def _is_reported(words: Sequence[str]) -> bool:
    """Return whether a sentence gives somebody else's words or wishes: 'Bob said …', 'the file tells you to …'."""
    return any(word in order_words.REPORTING for word in words[1:]) and words[0] not in {"i", "we", "ich", "wir"}


def _clauses_of(sentence: str) -> list[_Clause]:
    """Return the clauses of one sentence. A clause that may belong to the one before it is no certain order."""
    clauses: list[_Clause] = []
    # 'I write files, delete files, …' may go on; 'that's the note, post it' does not.
    listing = False
    pieces = [piece for part in _COMMA.split(sentence) for piece in _JOINING.split(part)]
    for words in filter(None, map(_words, pieces)):
        clause = _clause(words)
        before = clauses[-1].kind if clauses else None
        joined = words[0] in _AND
        if clause.kind is _Kind.STATEMENT:
            listing = bool(clause.verb)
        elif before is _Kind.STATEMENT and joined:
            # 'They post links and send mails': the statement goes on.
            clause = replace(clause, kind=_Kind.STATEMENT)
        elif (
            (listing and words[0] not in _TURNING)
            or (before is _Kind.UNSURE and joined)
            # 'Bob, post the link': perhaps said to Bob.
            or (clauses and _may_be_name(clauses[0]))
        ):
            clause = _doubted(clause)
        clauses.append(clause)
    return [_doubted(clause) for clause in clauses] if _is_doubtful(sentence, clauses) else clauses


def _is_doubtful(sentence: str, clauses: Sequence[_Clause]) -> bool:
    """Return whether something in the sentence makes its orders uncertain."""
    orders = [clause for clause in clauses if clause.kind is _Kind.ORDER]
    if not orders:
        return False
    last = clauses[-1]
    if len(clauses) > 1 and len(last.mentions) == 1 and _may_be_name(last):
        return True  # 'Post the link, Bob.'
    if sentence.rstrip().endswith("?") and last.mentions not in _TAGS and not all(each.requested for each in orders):
        return True  # 'Delete the file?'
    if any(clause.mentions[:1] in _EITHER for clause in clauses):
        return True  # 'Delete the file or keep it.'
    if not order_words.OTHERWISE.isdisjoint(_words(sentence)):
        return True  # 'Delete the file, else there is no room.'
    if any(_promises(clause) for clause in clauses):
        return True
    # 'Post the link, that's what she said.', 'write the file, delete the file, it's all the same'
    explained = last.kind is _Kind.STATEMENT and (len(orders) > 1 or last.mentions[:1] in _EXPLAINING)
    return explained or any(clause.kind is _Kind.STATEMENT and clause.mentions[-1:] == ("like",) for clause in clauses)


def _promises(clause: _Clause) -> bool:
    """Return whether a clause says what follows from an order: '… and I'll never speak to you again'."""
    joint, person = clause.mentions[:1], clause.mentions[1:2]
    return clause.kind is not _Kind.ORDER and joint in _JOINTS and not order_words.PERSONS.isdisjoint(person)


def _may_be_name(clause: _Clause) -> bool:
    return clause.kind is _Kind.UNSURE and not clause.verb


def _doubted(clause: _Clause) -> _Clause:
    return replace(clause, kind=_Kind.UNSURE) if clause.kind is _Kind.ORDER else clause


def _clause(words: list[str]) -> _Clause:
    """Classify one clause."""
    mentions = tuple(words)
    statement = _Clause(
        _Kind.STATEMENT, mentions=mentions, verb=next((word for word in words if order_words.verb_groups(word)), "")
    )
    while words and words[0] in order_words.OPENINGS:
        if words[0] in order_words.NEGATIONS and len(words) > 1:
            return statement
        polite = words[0] == "bitte"
        words = words[1:]
        if not polite or not order_words.NEGATIONS.isdisjoint(words):
            continue
        if words and (groups := order_words.german_infinitive(words[-1])):
            return _order(words[-1], groups, words[:-1], mentions)
    if not words:
        return _Clause(_Kind.TELLING)
    text = " ".join(words)
    if not order_words.NEGATIONS.isdisjoint(words) or not order_words.HABITS.isdisjoint(words) or _HABIT.search(text):
        return statement
    for pattern in (_YOU_REQUEST, _WANT_YOU):
        if found := pattern.match(text):
            return _requested(text[found.end() :].split(), mentions, mind="mind " in found[0])
    if found := _DU_REQUEST.match(text):
        rest = text[found.end() :].split()
        return _by_infinitive(rest, mentions)
    if text.startswith(("if ", "wenn ")) or _MAYBE.match(text):
        return _Clause(_Kind.UNSURE, "maybe", mentions=mentions)
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in order_words.TELLING:
        return _Clause(_Kind.TELLING if " to " not in text else _Kind.STATEMENT, mentions=mentions)
    if groups := order_words.ENGLISH_VERBS.get(first, frozenset()) | order_words.GERMAN_IMPERATIVES.get(
        first, frozenset()
    ):
        if second in {"i", "we", "he", "she", "they", "ich", "wir", "er", "sie", "man", "is", "are", "was", "and"}:
            return statement
        if order_words.english_participle(second):
            return statement
        if not _BEING.isdisjoint(words):
            # 'Post button is broken', 'note that the link is broken'.
            return _Clause(_Kind.UNSURE, first, mentions=mentions)
        return _order(first, groups, words[1:], mentions)
    if (
        first in order_words.ENGLISH_SUBJECTS
        or first in order_words.GERMAN_SUBJECTS
        or first in order_words.ASKING
        or first in {"can", "could", "would", "will", "kann", "kannst", "könnte", "you", "du"}
        or order_words.english_participle(first)
        or order_words.is_finite(first)
        or order_words.is_finite(second)
    ):
        return statement
    return _Clause(_Kind.UNSURE, mentions=mentions)


def _requested(words: list[str], mentions: tuple[str, ...], *, mind: bool) -> _Clause:
    """Classify 'could you …' and 'I want you to …' by the words after it."""
    first = words[0] if words else ""
    groups = order_words.english_participle(first) if mind else order_words.ENGLISH_VERBS.get(first, frozenset())
    if first in order_words.TELLING:
        return _Clause(_Kind.TELLING)
    if not groups:
        return _Clause(_Kind.UNSURE, "maybe", mentions=mentions)
    if len(words) == 2 and words[1].endswith("s") and words[1] not in order_words.SMALL:
        # 'Can you post links?' asks what the bot is able to do.
        return _Clause(_Kind.UNSURE, "maybe", mentions=mentions)
    return _order(first, groups, words[1:], mentions, requested=True)


def _by_infinitive(words: list[str], mentions: tuple[str, ...]) -> _Clause:
    """Classify 'kannst du … posten' by its infinitive, mostly the last word."""
    for at in range(len(words) - 1, -1, -1):
        if words[at] in order_words.TELLING:
            return _Clause(_Kind.TELLING)
        if groups := order_words.german_infinitive(words[at]):
            return _order(words[at], groups, words[:at] + words[at + 1 :], mentions, requested=True)
    return _Clause(_Kind.UNSURE, "maybe", mentions=mentions)


def _order(
    verb: str, groups: frozenset[str], rest: list[str], mentions: tuple[str, ...], *, requested: bool = False
) -> _Clause:
    return _Clause(_Kind.ORDER, verb, groups, tuple(rest), mentions, requested)
