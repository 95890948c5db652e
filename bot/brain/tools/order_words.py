"""The words by which `orders` tells what a sentence does: verbs of doing, and the small words around them. Pure.

The verbs are grouped by what they do, so that 'put that in the chat' may mean a tool that posts. English and German;
for other languages the bot asks first. What a tool acts on ('file', 'event') is never listed here: it comes from the
tool's own name and from the operator.
"""

from __future__ import annotations

import itertools
import re

from compaction.sentence_cache import sentence_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Base forms in English, stems in German ('poste', 'posten' and 'post' have the stem 'post').
_ENGLISH = {
    "give": "post send share drop paste put write publish forward upload",
    "mail": "mail email message",
    "keep": """write save store create make add put note record log jot schedule insert append overwrite draft book
    register""",
    "change": "update edit change rename move set modify replace",
    "remove": "delete remove erase clear wipe cancel drop",
    "play": "play start queue resume",
    "switch": "turn switch set toggle dim",
    "stop": "stop pause end close skip",
    "run": "run start execute launch trigger",
    "expel": "kick ban mute",
}
_GERMAN = {
    "give": "post schick send stell teil schreib setz pack leg häng leit",
    "keep": "schreib speicher erstell leg trag setz notier füg",
    "change": "änder bearbeit verschieb benenn ersetz",
    "remove": "lösch entfern",
    "play": "spiel start mach",
    "switch": "mach schalt dreh stell",
    "stop": "stopp beend schließ",
    "run": "führ start",
    "expel": "kick bann",
}
_SEPARABLE = _set("ab an aus ein auf rein hoch zu weg um hin her rüber los vor nach")


def _by_word(groups: dict[str, str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group, words in groups.items():
        for word in words.split():
            found.setdefault(word, set()).add(group)
    return {word: frozenset(kinds) for word, kinds in found.items()}


ENGLISH_VERBS = _by_word(_ENGLISH)
_GERMAN_STEMS = _by_word(_GERMAN)
# 'Post', 'poste': the imperative.
GERMAN_IMPERATIVES = {stem + end: groups for stem, groups in _GERMAN_STEMS.items() for end in ("", "e")}
_GERMAN_INFINITIVES = {stem + end: groups for stem, groups in _GERMAN_STEMS.items() for end in ("en", "n")}
_ENGLISH_PARTICIPLES = {
    form: verb
    for verb in ENGLISH_VERBS
    for form in (f"{verb}ing", f"{verb.removesuffix('e')}ing", f"{verb}{verb[-1]}ing")
}


# Verbs that ask for words, not for a deed.
TELLING = _set(
    """read tell say explain show summarise summarize describe look find check search list repeat translate count
    compare remember know see hear understand imagine think believe guess recall name quote ask answer help talk
    lies lese sag sage sagen erklär erkläre erklären zeig zeige zeigen nenn nenne erzähl erzähle erzählen such suche
    suchen finde finden schau guck hör fass übersetz übersetze beschreib beschreibe frag frage lesen verraten"""
)
# Words that may stand before an order.
OPENINGS = _set(
    """please just now ok okay so and then but well um uh er oh ah hey hi hello yes yeah yep no nope right alright great
    good perfect cool nice fine thanks thank also kindly maybe perhaps quickly actually quick sorry
    bitte jetzt mal und dann aber also ja nein gut okay danke super doch eben schnell so nun hallo kurz einfach noch"""
)
ENGLISH_SUBJECTS = _set(
    """i we he she it they this that these those there the a an my your our his her its their some any every all both
    one i'm i'd i'll i've we're we'd we'll we've he's she's it's they're they'd they'll that's there's you're you've
    you'll everybody everyone somebody someone anybody nobody"""
)
GERMAN_SUBJECTS = _set(
    """ich wir er sie es ihr man der die das den dem des ein eine einen einem einer mein meine dein deine unser unsere
    dieser diese dieses diesen jemand alle jeder"""
)
# Words that begin a question about something.
ASKING = _set(
    """who whom whose what which when where why how is are was were am do does did has have had may might must shall
    should isn't aren't wasn't weren't doesn't didn't hasn't haven't hadn't shouldn't who's what's where's how's
    wer wen wem wessen was welche welcher welches welchen wann wo wohin woher warum wieso weshalb wie ist sind war waren
    hat haben habt hast hatte hattest soll sollen sollte sollten darf dürfen wird werden"""
)
NEGATIONS = _set(
    """not no never nobody nothing none neither nor without cannot don't doesn't didn't won't wouldn't can't couldn't
    shouldn't mustn't isn't aren't wasn't weren't haven't hasn't hadn't needn't dont
    nicht nie niemals kein keine keinen keinem keiner keines nichts niemand ohne"""
)
CONDITIONS = _set(
    """if when whenever unless until before while suppose supposing provided assuming
    wenn falls sobald bevor solange sofern nachdem"""
)
# 'Once the raid is over, …': a condition only at the beginning.
FIRST_CONDITIONS = _set("once after as otherwise nach sonst")
OTHERWISE = _set("otherwise else sonst")
# The speaker gives the words or wishes of somebody.
REPORTING = _set(
    """said says told tells asked asks wanted wants meant means goes reads replied answered
    sagt sagte gesagt meint meinte gemeint fragt fragte gefragt steht wollte"""
)
# A statement has one of these as its second word.
FINITE = _set(
    """is are was were has have had does did will would can could should might must went sent wrote put made got
    gave took kept told said
    ist sind war hat hatte haben wird kann soll muss will möchte"""
)
HABITS = _set("always usually often never immer oft")
PRONOUNS = _set(
    "it that this them these those one something das es ihn sie die den diese dieses diesen alles all everything"
)
# Small words that name nothing: with them alone, an order's object is what was spoken of just before.
SMALL = PRONOUNS | _set(
    """to in into on onto at for from of with us me him her you here there again the a an my our off out up down over
    too already right away will would could can
    in den dem im ins an auf für von mit uns mir ihm ihr dir hier da dort wieder ein eine einen rein aus nach zu auch"""
)
# What may stand beside an order's verb and a pronoun: 'post it here now'. Not 'write it off', nor 'play it cool'.
POINTING = (SMALL | OPENINGS) - _set("off out up down over away cool nice good great fine right alright perfect gut")
# 'Play that song and I'll leave': after an order, more often a threat or a promise than another order.
PERSONS = _set("""i we he she they you i'll we'll he'll she'll they'll you'll you're i'm we're ich wir er sie du ihr""")
YES = _set(
    """yes yeah yep yup sure ok okay please absolutely definitely certainly exactly
    ja jo jap jep jupp jawohl klar gerne gern bitte genau einverstanden unbedingt okay
    oui sí si sì sim da да はい うん 네 是 好 tak ano joo"""
)
# What may stand beside a yes: 'yes, go ahead', 'ja, mach das'.
BESIDE_YES = OPENINGS - NEGATIONS - {"but", "aber", "nope", "nein", "no", "sorry"} | SMALL | _set("do go mach mache tu")
# 'Na klar' is a yes, and 'na ja' is none.
GO_AHEAD = re.compile(
    r"\b(?:go ahead|do it|do that|of course|mach das|mach es|mach mal|tu das|natürlich|na klar|auf jeden fall)\b"
)


def english_participle(word: str) -> frozenset[str]:
    """Return the groups of the verb of 'posting'."""
    return ENGLISH_VERBS.get(_ENGLISH_PARTICIPLES.get(word, ""), frozenset())


def german_infinitive(word: str) -> frozenset[str]:
    """Return the groups of 'posten', 'abspielen' or 'einzutragen'."""
    if word in _GERMAN_INFINITIVES:
        return _GERMAN_INFINITIVES[word]
    for prefix, joint in itertools.product(_SEPARABLE, ("", "zu")):
        if groups := _GERMAN_INFINITIVES.get(word.removeprefix(prefix + joint) if word.startswith(prefix) else ""):
            return groups
    return frozenset()


@sentence_cache(most=4_096)
def verb_groups(word: str) -> frozenset[str]:
    """Return the groups of a word of a tool's name, if it is a verb of doing."""
    return ENGLISH_VERBS.get(word) or GERMAN_IMPERATIVES.get(word) or german_infinitive(word)


def is_finite(word: str) -> bool:
    """Return whether a word can only be the verb of a statement: 'posted', 'sends', 'schickt'."""
    if word in FINITE:
        return True
    stems = [word.removesuffix(end) for end in ("d", "ed", "s", "es", "t", "te", "et") if word.endswith(end)]
    stems += [stem[:-1] for stem in stems if len(stem) > 2 and stem[-1] == stem[-2]]
    return word not in ENGLISH_VERBS and any(stem in ENGLISH_VERBS or stem in _GERMAN_STEMS for stem in stems)


# Words by which English and German are told from other languages.
_KNOWN = OPENINGS | ENGLISH_SUBJECTS | GERMAN_SUBJECTS | ASKING | NEGATIONS | CONDITIONS | SMALL | FINITE | TELLING
_GERMAN_WORDS = (GERMAN_SUBJECTS | _set("bitte und du mir mal dass nicht kannst könntest würdest mach")) - {
    "die", "des", "den", "er", "man", "war", "alle",
}  # fmt: skip


def is_known_language(words: list[str]) -> bool:
    """Return whether `words` look like English or German."""
    return any(word in _KNOWN or verb_groups(word) for word in words)


def is_german(text: str, *, language: str) -> bool:
    """Return whether `text` is German. `language`: the code of its language; empty: its words tell it, some of which
    French and Spanish have too ('du', 'es').
    """
    if language:
        return language == "de"
    words = re.findall(r"\w+", text.casefold())
    return any(word in _GERMAN_WORDS or (word in GERMAN_IMPERATIVES and word not in ENGLISH_VERBS) for word in words)
