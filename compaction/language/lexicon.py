"""The English word lists and cues of this package. `STOPWORDS` is the one stop-word list, also for the bot."""

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

# Stop words that are names if they have a capital letter inside a sentence.
STOPWORD_NAMES = frozenset({"may", "will"})

# Number words and their values in digits.
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
# `one` and `two` are pronouns and quantities more often than figures. They count as figures only in the sources that a
# model's text is checked against.
SMALL_NUMBER_WORDS = {"one": "1", "two": "2", "once": "1"}
WEEKDAYS = _set("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = _set("january february march april may june july august september october november december")
# 'may' is left out, because it is a month only if it has a capital letter, and then it counts as a name.
CALENDAR = (WEEKDAYS | MONTHS) - {"may"}
# Words that often begin a sentence with a capital letter and are not names. Stop words and words that end in -ing, -ed
# or
# -ly are recognised separately.
COMMON_OPENERS = _set(
    """according active agree agrees asks assistant believes brings build builds buys calls cancels chooses claims
    confirms considers continues decides declines discusses does everyone explains feels finds forgets gives group
    hates hears hopes joins keeps leaves likes lives looks loves members mentions moves needs next notes offers open
    owns participants people planning plans plays points prefers promises proposes reads recommends reminds reports
    requests room runs sees sends shares shows speakers starts stays suggests summary supports takes talks team tells
    thinks today tomorrow tonight tries turns two uses wonders words works worries writes yesterday"""
)

# Cues of what still matters tomorrow: decisions, promises, duties, arrangements, debts, wishes.
DECISION_CUES = re.compile(
    r"\b(?:decid\w+|agree[ds]?|let's|we'll|i'll|i will|we will|will be|you'll|gonna|going to|promis\w+|plan(?:s|ned)?|"
    r"book(?:ed|ing)|reserv\w+|deadline|due|hand in|schedul\w+|settled|chose|choose|pick(?:ed)?|vote[ds]?|must|"
    r"have to|need to|remember|don't forget|remind|prefer\w*|rather|favou?rite|i (?:really )?want|budget|costs?|price|"
    r"paid|owe[ds]?|borrow\w*|lent|lend|password|code|address|meet(?:ing)?|appointment|tomorrow|tonight|next (?:week|"
    r"month|year|time|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|at (?:noon|midnight)|confirmed|"
    r"cancel\w+|postpon\w+|moved? (?:it |the \w+ )?to|changed? (?:it |the \w+ )?to|instead|responsible|in charge|"
    r"takes? care of|bring(?:s|ing)?|fly(?:ing)? to|travel\w* to|start(?:s|ing)? (?:at|on|in)|rules?)\b",
    re.IGNORECASE,
)
# Cues that somebody talks about their own life.
PERSONAL_CUES = re.compile(
    r"\b(?:(?:my|our) (?:name|wife|husband|partner|sister|brother|mother|father|mum|mom|dad|son|daughter|kids?|cousin|"
    r"aunt|uncle|flatmate|roommate|girlfriend|boyfriend|dog|cat|boss|job|birthday|house|flat|car|phone|email|number|"
    r"team|favou?rite)|i'm (?:from|called|allergic|living|working|learning|studying|vegan|vegetarian|afraid)|i am (?:"
    r"from|called|allergic)|i (?:live|work|study|grew|was born|moved|own|play|love|hate|like|can't stand|can't eat|"
    r"don't eat|speak|used to)|call me|allerg\w+|can't eat|birthday|got (?:the|a) job|years old|married|joined|"
    r"left the)\b",
    re.IGNORECASE,
)
# A day, a date or a time of day. It usually belongs to an arrangement.
DATE_CUES = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|june|july|august|september|"
    r"october|november|december)\b|\bo'clock\b|\b(?:half|quarter) (?:past|to)\b|\b\d{1,2}(?::\d\d| ?[ap]\.?m\b)",
    re.IGNORECASE,
)
MONEY_CUES = re.compile(r"[€£$¥]\s?\d|\b(?:euros?|pounds?|dollars?|bucks|cents?|quid)\b", re.IGNORECASE)
# Cues of what is over in a minute: the state of the call, of the game round, or of the speaker.
PASSING_CUES = re.compile(
    r"\b(?:hold on|hang on|one (?:sec|second|moment|minute)|(?:just )?a (?:sec|second|moment)|give me|let me just|"
    r"right now|at the moment|brb|be right back|back in a|nice (?:one|shot|try|round|game)|"
    r"good (?:one|game|job|shot|round)|well played|next round|last round|one more (?:round|game)|acting up|"
    r"mute[d]?|mic|microphone|headset|lag\w*|ping|"
    r"loading|reload\w*|restart\w*|reconnect\w*|no idea|sounds good|never mind|i think so|can you hear|doorbell|"
    r"i'm stuck|regroup|the weather)\b",
    re.IGNORECASE,
)
# Filler words before the actual beginning of a sentence.
PREAMBLE = re.compile(
    r"^(?:(?:so|um+|uh+|er+|well|okay|ok|right|listen|look|oh|ah|hey|hello|hi|yeah|and|but|like|anyway|by the way|"
    r"before i forget|just so you know|you know|i mean|guys|folks|everybody|everyone|good (?:morning|evening))"
    r"\b(?:,|\.\.\.|…)\s*|(?:um+|uh+|er+|okay|ok|oh|hey|and|but|anyway|by the way)\s+|"
    r"so\s+(?=(?:the|a|my|our|we|i|i'm|you|he|she|it|they|let's|what|who|when|where|how|is|are|do|did|um+|uh+)\b))+"
    r"(?=\S)",
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
    r"\b(?:actually|any ?more|chang\w+|mov(?:e|es|ed|ing)|new|now|wait|not|switch\w*|swap\w*|push\w*|wrong|sorry|"
    r"after all|since|these days|nowadays|currently)\b|n't\b",
    re.IGNORECASE,
)
# A tag question like 'isn't it?', which only asks for agreement.
TAG_QUESTION = re.compile(
    r",\s*(?:isn't|aren't|wasn't|weren't|don't|doesn't|didn't|won't|can't|couldn't|wouldn't|right|huh|eh|innit|yeah|"
    r"you know)\b[^,.?]{0,12}\?\W*$",
    re.IGNORECASE,
)
# Words that surround a fact but are not its subject: 'write that down', 'don't be late', 'I asked already'.
AROUND_A_FACT = _set(
    """ask told tell check mail write remember forget listen calendar late o'clock clock talk hear heard promise know
    guess say said mention remind yesterday today tomorrow last week month year happen work"""
)
# Cues that say outright that something replaces something else.
REPLACEMENT_CUES = re.compile(
    r"^(?:no|nope|nah|not any ?more|not quite|wrong)\b|\b(?:instead|in place of|rather than|chang\w* (?:my|our|his|her|"
    r"their) minds?|change of (?:plans?|mind)|no longer|(?:not|n't)\b[^.?!]*\bany ?more|(?:scratch|scrap|forget|ignore|"
    r"strike) (?:that|what i said)|make (?:that|it)|i meant?|i misspoke|i was wrong|my (?:mistake|bad)|correction|"
    r"second thoughts?|(?:got |was |is |been |be |are |were |have )?(?:moved|pushed|shifted|bumped|switched|swapped|"
    r"postponed|rescheduled|delayed|changed|replaced|reset|rearranged|brought forward)|extended|can't (?:make|do) it|"
    r"is out|dropped out|took over|takes over|taking over|stepped in|steps in|fill\w* in for|updated?|turns out|"
    r"turned out|"
    r"went (?:up|down) to|up to|down to|it's now|is now|are now|used to be|as it turns out|"
    r"no,? (?:no,? )?(?:it|that|the|they|we|he|she|make|not|wait|actually)|not \w+(?: \w+)?,? but|"
    r"new(?= (?:date|day|time|place|plan|code|number|deadline|price|"
    r"address|meeting point|name|password)\b)|re(?:book|nam|arrang|schedul)\w*|running late|"
    r"mixed (?:that|it|them|those) up|got (?:that|it|this) wrong|was mistaken|"
    r"(?:cut|raised|lowered|reduced|increased|dropped|bumped)(?=\b[^.?!]* to \W?\d))\b",
    re.IGNORECASE,
)
# Those of the replacement cues that name what is wanted instead.
INSTEAD_CUES = re.compile(r"\b(?:instead|in place of|rather than|chang\w* (?:my|our) minds?)\b", re.IGNORECASE)
# The beginning of an answer that can't be understood without its question.
BARE_ANSWER = re.compile(
    r"^(?:no|nope|nah|yes|yeah|yep|not any ?more|it's|it is|it was|that's|they're|about|around|"
    r"exactly|right|correct)\b",
    re.IGNORECASE,
)
ADDITION_CUES = re.compile(r"\b(?:also|too|as well|another|besides|both|in addition|plus)\b", re.IGNORECASE)
ONESELF = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine|me|myself)\b", re.IGNORECASE)
STATEMENT_CUES = re.compile(
    r"\b(?:is|are|will be|costs?|starts?|begins?|leaves?|opens?|closes?|lives?|equals?|means?|needs?|runs?)\b|"
    r"\w['’](?:s|re)\b",
    re.IGNORECASE,
)
# The beginning of a sentence that takes back what was just said.
TAKING_BACK = re.compile(
    r"^(?:(?:oh|ah|um+|uh|er|well|yeah|okay|ok|hm+|so|but|and)[,.]? )*"
    r"(?:no(?! (?:idea|one|way|problem|worries|thanks|doubt|need|matter))|nope|nah|negative|not any ?more|not quite|"
    r"wrong|wait|hang on|hold on|sorry|actually|correction|(?:scratch|scrap|strike|forget) (?:that|it)|or rather|"
    r"rather|i mean|my (?:bad|mistake)|i misspoke|change of plans?)\b[,;:.!…—– ]*",
    re.IGNORECASE,
)
# Other cues that something has changed, which may stand anywhere in a sentence.
OTHERWISE = re.compile(
    r"\b(?:make (?:that|it)|i meant|should (?:be|have been|say)|now|instead|not any ?more|after all|turns out|"
    r"(?:it|that|they|this|we|he|she)(?:['’]s| is|['’]re| are)? actually|"
    r"(?:moved|changed|pushed|shifted|switched|bumped|delayed|postponed|rescheduled|extended|brought|put|raised|"
    r"lowered|went|gone)(?: (?:it|that|them|us))?(?: (?:back|up|down|forward|ahead|out|over))? (?:to|till|until)|"
    r"(?:will|['’]ll|let['’]?s) (?:do|say|make it|take|go with|go for)|(?:actually|sorry|rather)(?=\W*$))\b",
    re.IGNORECASE,
)
# General words that don't tell what a correction is about: 'we leave at nine now', 'it costs 50 euros now'.
SUBJECTLESS = _set(
    """start begin leave meet end finish open close happen cost stay stand land fall run do make mean go come bring take
    drive host cook lead play pay owe need book plan schedule settle decide agree pick choose switch move push shift
    change bump delay postpone reschedule extend raise lower swap time date day place number code price one ones better
    best new correct right misspoke mistake correction idea sharp exactly roughly later earlier early late
    due apparently definitely probably evening morning afternoon night euro pound dollar buck cent quid percent people
    person minute hour meter mile kilometer degree"""
)
