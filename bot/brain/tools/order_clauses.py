"""Reads the clauses of what somebody said: which are orders, which may be, and which are none. Pure.

An order is an imperative ('post the link'), or a request to the bot ('could you …', 'I want you to …', 'kannst du …
posten'). A question, a report, a negation, a condition or somebody else's words are none, whatever nouns they hold.
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
    from collections.abc import Sequence

# How well an order fits a tool: whether by its very verb, and by how many of its nouns.
ToolFit: TypeAlias = tuple[bool, int]


class ClauseKind(Enum):
    """What a clause does. A telling clause asks for words ('read the file')."""

    ORDER = auto()
    UNSURE = auto()
    TELLING = auto()
    STATEMENT = auto()


@dataclass(frozen=True, slots=True)
class Clause:
    """`verb`: its verb of doing. `rest`: the other words. `mentions`: all its words. `requested`: an order in the form
    of a question. `fits`, `mentioned`: what was found about tools, by their words, since each is compared with all.
    """

    kind: ClauseKind
    verb: str = ""
    groups: frozenset[str] = frozenset()
    rest: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    requested: bool = False
    fits: dict[tuple[str, ...], ToolFit | None] = field(default_factory=dict, init=False, compare=False, repr=False)
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
# After one of these a verb is no imperative: 'post is late', 'stop and think'.
_AFTER_NO_IMPERATIVE = frozenset(
    {"i", "we", "he", "she", "they", "ich", "wir", "er", "sie", "man", "is", "are", "was", "and"}
)
# What begins with one of these is a statement or a question, if it is no request.
_FIRST_OF_STATEMENTS = (
    order_words.ENGLISH_SUBJECTS
    | order_words.GERMAN_SUBJECTS
    | order_words.ASKING
    | frozenset({"can", "could", "would", "will", "kann", "kannst", "könnte", "you", "du"})
)


@sentence_cache(most=32)
def clauses_in(said: str) -> tuple[Clause, ...] | None:
    """Return the clauses of what was said, or None if its language is not known."""
    if not any(letter.isalnum() for letter in said):
        return ()
    for pattern, meaning in _PHRASES:
        said = pattern.sub(meaning, said)
    if not order_words.is_known_language(tokens_of(said)) or re.search(f"[{UNSPACED}]", said):
        return None
    clauses: list[Clause] = []
    reported = False
    for sentence in _SENTENCE.split(_FILE_NAME.sub("file", _QUOTED.sub(" quoted ", said))):
        words = tokens_of(sentence)
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


def _clauses_of(sentence: str) -> list[Clause]:
    """Return the clauses of one sentence. A clause that may belong to the one before it is no certain order."""
    clauses: list[Clause] = []
    # 'I write files, delete files, …' may go on; 'that's the note, post it' does not.
    listing = False
    pieces = [piece for part in _COMMA.split(sentence) for piece in _JOINING.split(part)]
    for words in filter(None, map(tokens_of, pieces)):
        clause = _clause(words)
        before = clauses[-1].kind if clauses else None
        joined = words[0] in _AND
        if clause.kind is ClauseKind.STATEMENT:
            listing = bool(clause.verb)
        elif before is ClauseKind.STATEMENT and joined:
            # 'They post links and send mails': the statement goes on.
            clause = replace(clause, kind=ClauseKind.STATEMENT)
        elif (
            (listing and words[0] not in _TURNING)
            or (before is ClauseKind.UNSURE and joined)
            # 'Bob, post the link': perhaps said to Bob.
            or (clauses and _may_be_name(clauses[0]))
        ):
            clause = _doubted(clause)
        clauses.append(clause)
    return [_doubted(clause) for clause in clauses] if _is_doubtful(sentence, clauses) else clauses


def _is_doubtful(sentence: str, clauses: Sequence[Clause]) -> bool:
    """Return whether something in the sentence makes its orders uncertain."""
    orders = [clause for clause in clauses if clause.kind is ClauseKind.ORDER]
    if not orders:
        return False
    last = clauses[-1]
    if len(clauses) > 1 and len(last.mentions) == 1 and _may_be_name(last):
        return True  # 'Post the link, Bob.'
    if sentence.rstrip().endswith("?") and last.mentions not in _TAGS and not all(each.requested for each in orders):
        return True  # 'Delete the file?'
    if any(clause.mentions[:1] in _EITHER for clause in clauses):
        return True  # 'Delete the file or keep it.'
    if not order_words.OTHERWISE.isdisjoint(tokens_of(sentence)):
        return True  # 'Delete the file, else there is no room.'
    if any(_promises(clause) for clause in clauses):
        return True
    # 'Post the link, that's what she said.', 'write the file, delete the file, it's all the same'
    explained = last.kind is ClauseKind.STATEMENT and (len(orders) > 1 or last.mentions[:1] in _EXPLAINING)
    return explained or any(
        clause.kind is ClauseKind.STATEMENT and clause.mentions[-1:] == ("like",) for clause in clauses
    )


def _promises(clause: Clause) -> bool:
    """Return whether a clause says what follows from an order: '… and I'll never speak to you again'."""
    joint, person = clause.mentions[:1], clause.mentions[1:2]
    return clause.kind is not ClauseKind.ORDER and joint in _JOINTS and not order_words.PERSONS.isdisjoint(person)


def _may_be_name(clause: Clause) -> bool:
    return clause.kind is ClauseKind.UNSURE and not clause.verb


def _doubted(clause: Clause) -> Clause:
    return replace(clause, kind=ClauseKind.UNSURE) if clause.kind is ClauseKind.ORDER else clause


def _clause(words: Sequence[str]) -> Clause:
    """Classify one clause, by the first of its readings that fits."""
    mentions = tuple(words)
    rest = list(words)
    while rest and rest[0] in order_words.OPENINGS:
        opening, rest = rest[0], rest[1:]
        if opening in order_words.NEGATIONS and rest:
            return _statement(mentions)
        if opening == "bitte" and (order := _polite_order(rest, mentions)) is not None:
            return order
    if not rest:
        return Clause(ClauseKind.TELLING)
    readings = (_as_denial_or_habit, _as_request, _as_condition, _as_telling, _as_imperative, _as_statement)
    found = (reading(rest, mentions) for reading in readings)
    return next((clause for clause in found if clause is not None), Clause(ClauseKind.UNSURE, mentions=mentions))


def _statement(mentions: tuple[str, ...]) -> Clause:
    verb = next((word for word in mentions if order_words.verb_groups(word)), "")
    return Clause(ClauseKind.STATEMENT, mentions=mentions, verb=verb)


def _polite_order(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    """Read 'bitte den Link posten', by the words after 'bitte'."""
    if not words or not order_words.NEGATIONS.isdisjoint(words):
        return None
    groups = order_words.german_infinitive(words[-1])
    return _order(words[-1], groups, words[:-1], mentions) if groups else None


def _as_denial_or_habit(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    is_none = order_words.NEGATIONS.isdisjoint(words) and order_words.HABITS.isdisjoint(words)
    return None if is_none and not _HABIT.search(" ".join(words)) else _statement(mentions)


def _as_request(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    text = " ".join(words)
    for pattern in (_YOU_REQUEST, _WANT_YOU):
        if found := pattern.match(text):
            return _requested(text[found.end() :].split(), mentions, mind="mind " in found[0])
    if found := _DU_REQUEST.match(text):
        return _by_infinitive(text[found.end() :].split(), mentions)
    return None


def _as_condition(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    text = " ".join(words)
    is_open = text.startswith(("if ", "wenn ")) or _MAYBE.match(text)
    return Clause(ClauseKind.UNSURE, "maybe", mentions=mentions) if is_open else None


def _as_telling(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    if words[0] not in order_words.TELLING:
        return None
    return Clause(ClauseKind.TELLING if " to " not in " ".join(words) else ClauseKind.STATEMENT, mentions=mentions)


def _as_imperative(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    """Read 'post the link', unless what follows shows that the verb is none ('post button is broken')."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    none: frozenset[str] = frozenset()
    groups = order_words.ENGLISH_VERBS.get(first, none) | order_words.GERMAN_IMPERATIVES.get(first, none)
    if not groups:
        return None
    if second in _AFTER_NO_IMPERATIVE or order_words.english_participle(second):
        return _statement(mentions)
    if not _BEING.isdisjoint(words):
        # 'Note that the link is broken' is doubtful, too.
        return Clause(ClauseKind.UNSURE, first, mentions=mentions)
    return _order(first, groups, words[1:], mentions)


def _as_statement(words: list[str], mentions: tuple[str, ...]) -> Clause | None:
    """Read what begins with a subject or a question's word, or has a finite verb there."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    begins = (
        first in _FIRST_OF_STATEMENTS
        or order_words.english_participle(first)
        or order_words.is_finite(first)
        or order_words.is_finite(second)
    )
    return _statement(mentions) if begins else None


def _requested(words: list[str], mentions: tuple[str, ...], *, mind: bool) -> Clause:
    """Classify 'could you …' and 'I want you to …' by the words after it."""
    first = words[0] if words else ""
    groups = order_words.english_participle(first) if mind else order_words.ENGLISH_VERBS.get(first, frozenset())
    if first in order_words.TELLING:
        return Clause(ClauseKind.TELLING)
    if not groups:
        return Clause(ClauseKind.UNSURE, "maybe", mentions=mentions)
    if len(words) == 2 and words[1].endswith("s") and words[1] not in order_words.SMALL:
        # 'Can you post links?' asks what the bot is able to do.
        return Clause(ClauseKind.UNSURE, "maybe", mentions=mentions)
    return _order(first, groups, words[1:], mentions, requested=True)


def _by_infinitive(words: list[str], mentions: tuple[str, ...]) -> Clause:
    """Classify 'kannst du … posten' by its infinitive, mostly the last word."""
    for at in range(len(words) - 1, -1, -1):
        if words[at] in order_words.TELLING:
            return Clause(ClauseKind.TELLING)
        if groups := order_words.german_infinitive(words[at]):
            return _order(words[at], groups, words[:at] + words[at + 1 :], mentions, requested=True)
    return Clause(ClauseKind.UNSURE, "maybe", mentions=mentions)


def _order(
    verb: str, groups: frozenset[str], rest: list[str], mentions: tuple[str, ...], *, requested: bool = False
) -> Clause:
    return Clause(ClauseKind.ORDER, verb, groups, tuple(rest), mentions, requested)


def tokens_of(text: str) -> list[str]:
    return [token.casefold().replace("’", "'") for token in _TOKEN.findall(text)]
