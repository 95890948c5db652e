"""The word lists and cues of `wording`: English, closed, and each with the reason it is there."""

from __future__ import annotations

import re


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Words that carry no meaning of their own.
STOPWORDS = _set(
    """a about above actually after again all almost already also although always am an and another any anybody anyone
    anything are aren't around as at away back be because been before being but by came can can't cannot come could
    couldn't did didn't do does doesn't doing don't done down each either else even ever every everybody everyone
    everything few for from get gets getting go goes going gone gonna got had hadn't has hasn't have haven't having
    he he'd he'll he's her here hers herself ha haha hahaha hey hi him himself his hmm how i i'd i'll i'm i've if in
    indeed instead into is isn't it it'd it'll it's its itself just kind kinda know let let's like lmao lol lot lots
    made make makes many may maybe me mean might mine more most much must my myself need no nobody none nor not
    nothing now of off oh ok okay on once one only onto or other our ours ourselves out over own per perhaps please
    pretty put quite rather really right said same saw say says see seem seems she she'd she'll she's should
    shouldn't since so some somebody someone something sort still such sure take than thank thanks that that'd
    that'll that's the their theirs them themselves then there there's these they they'd they'll they're they've
    thing things think this those though through thus to too totally true try two uh um under until up upon us very
    wanna want wants was wasn't way we we'd we'll we're we've well went were weren't what what's when where whether
    which while who who's whom whose why will with within without won't would wouldn't wow yay yeah yep yes yet you
    you'd you'll you're you've your yours yourself"""
)

# Of these, the ones that are names when they have a capital letter inside a sentence.
STOPWORD_NAMES = frozenset({"may", "will"})

# Number words by their digits.
NUMBER_WORDS = {
    word: str(value)
    for value, words in {
        0: "zero nought",
        1: "first",
        2: "second twice",
        3: "three third",
        4: "four fourth",
        5: "five fifth",
        6: "six sixth",
        7: "seven seventh",
        8: "eight eighth",
        9: "nine ninth",
        10: "ten tenth",
        11: "eleven eleventh",
        12: "twelve twelfth dozen",
        13: "thirteen thirteenth",
        14: "fourteen fourteenth",
        15: "fifteen fifteenth",
        16: "sixteen sixteenth",
        17: "seventeen seventeenth",
        18: "eighteen eighteenth",
        19: "nineteen nineteenth",
        20: "twenty twentieth",
        30: "thirty thirtieth",
        40: "forty fortieth",
        50: "fifty fiftieth",
        60: "sixty sixtieth",
        70: "seventy seventieth",
        80: "eighty eightieth",
        90: "ninety ninetieth",
        100: "hundred hundredth",
        1000: "thousand",
        1000000: "million",
    }.items()
    for word in words.split()
}
# `one` and `two` are pronouns and quantities more often than figures; they count when a model invents them.
SMALL_NUMBER_WORDS = {"one": "1", "two": "2", "once": "1"}
CALENDAR = _set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december"""
)
# Words that begin a sentence with a capital letter and are no names, besides stopwords and what ends in -ing, -ed.
COMMON_OPENERS = _set(
    """according active agree agrees asks assistant believes brings build builds buys calls cancels chooses claims
    confirms considers continues decides declines discusses does everyone explains feels finds forgets gives group
    hates hears hopes joins keeps leaves likes lives looks loves members mentions moves needs next notes offers open
    owns participants people planning plans plays points prefers promises proposes reads recommends reminds reports
    requests room runs sees sends shares shows speakers starts stays suggests summary supports takes talks team tells
    thinks today tomorrow tonight tries turns two uses wonders words works worries writes yesterday"""
)

DECISION_CUES = re.compile(
    r"\b(?:decid\w+|agree[ds]?\b|let's|we'll|i'll|i will|we will|will be|you'll|gonna|going to|promis\w+|"
    r"plan(?:s|ned)?\b|book(?:ed|ing)|reserv\w+|deadline|due|schedul\w+|settled|chose|choose|pick(?:ed)?|vote[ds]?|must|"
    r"have to|need to|"
    r"remember|don't forget|remind|prefer\w*|rather|favou?rite|budget|costs?|price|paid|owes?|password|code|"
    r"address|meet(?:ing)?|tomorrow|tonight|next (?:week|month|year|time|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday)|at (?:noon|midnight|\d+)|is set|confirmed|cancel\w+|"
    r"moved? (?:it |the \w+ )?to|changed? (?:it |the \w+ )?to|instead|responsible|in charge|bring(?:ing)?|rule)\b",
    re.IGNORECASE,
)
PERSONAL_CUES = re.compile(
    r"\b(?:my (?:name|wife|husband|partner|sister|brother|mother|father|mum|mom|dad|son|daughter|kids?|dog|cat|boss|"
    r"job|birthday|house|flat|car|phone|email|number|team|favou?rite|\w+ is)|i'm (?:from|called|allergic|a|an|the|in|"
    r"living|working|learning|studying|vegan|vegetarian|afraid)|i am (?:from|called|allergic|a|an)|i (?:live|work|"
    r"study|grew|was born|moved|own|play|love|hate|like|can't stand|can't eat|don't eat|speak|used to)|call me|"
    r"allerg\w+|birthday|joined|left the)\b",
    re.IGNORECASE,
)
ACTIVITY_CUES = re.compile(
    r"\b(?:we're|we are|i'm|they're|playing|watching|looking at|working on|screen|level|match|round|"
    r"boss fight|stream\w*|reading|building|cooking|drawing)\b",
    re.IGNORECASE,
)
OPEN_CUES = re.compile(
    r"\b(?:not sure|undecided|don't know|still (?:need|have|to|waiting|open)|find out|figure out|ask (?:him|her|them)|"
    r"remains? open|haven't (?:decided|heard|found))\b",
    re.IGNORECASE,
)
CHANGE_CUES = re.compile(
    r"\b(?:actually|instead|no longer|any ?more|chang\w+|moved?|mov(?:ing)?|correction|i meant|rather than|scratch "
    r"that|second thoughts?|turns out|new|now|wait|not \w+ but|update[ds]?|switch\w*|postponed?|delayed?|wrong)\b",
    re.IGNORECASE,
)
# A question only in form: it asks for a nod.
TAG_QUESTION = re.compile(
    r",\s*(?:isn't|aren't|wasn't|weren't|don't|doesn't|didn't|won't|can't|couldn't|wouldn't|right|huh|eh|innit|yeah|"
    r"you know)\b[^,.?]{0,12}\?\W*$",
    re.IGNORECASE,
)
ADDITION_CUES = re.compile(r"\b(?:also|too|as well|another|besides|both|in addition|plus)\b", re.IGNORECASE)
ONESELF = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|myself)\b", re.IGNORECASE)
STATEMENT_CUES = re.compile(
    r"\b(?:is|are|will be|costs?|starts?|begins?|leaves?|opens?|closes?|lives?|equals?|means?)\b|\w['’](?:s|re)\b",
    re.IGNORECASE,
)
