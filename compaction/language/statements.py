"""Patterns of sentences in which people state lasting facts about themselves, each with its topic. English.

A topic has one value at a time: a person has one `home`, and one `language: {value}` for each language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A value ends at the end of its clause.
_END = (
    r"(?=\s*(?:[.,;:!?…()]|$|\s(?:and|but|so|because|since|cause|which|who|where|though|although|while|then|too|now|"
    r"these days|nowadays|at the moment|right now|actually|anyway|any ?more|instead|by the way|you know|i think|"
    r"to be honest|if|when|as well|with|for the)\b))"
)
_VALUE = r"(?P<value>[^.,;:!?…()]+?)" + _END
# A name begins with a capital letter, as speech recognisers write it.
_NAME = r"(?P<value>(?-i:[A-Z])[^.,;:!?…()]*?)" + _END
_OFTEN = (
    r"(?:(?:really|always|usually|generally|definitely|actually|absolutely|just|still|now|also|kind of|currently) )*"
)
_BEING = r"I(?: am|'m|’m) " + _OFTEN
_RELATIVE = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mother|father|mum|mom|dad|sister|brother|daughter|son|"
    r"grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|boss|flatmate|roommate|twin)"
)
_KEPT = (
    r"(?:kids?|child|children|daughters?|sons?|sisters?|brothers?|twins|dogs?|cats?|puppy|puppies|kittens?|horses?|"
    r"rabbits?|parrots?|hamsters?|tortoises?|chickens|bees|grandchildren|grandkids?)"
)
_OCCUPATIONS = (
    r"nurse|doctor|teacher|student|chef|cook|lawyer|pilot|vet|baker|plumber|farmer|driver|writer|painter|musician|"
    r"singer|dancer|actor|actress|architect|engineer|developer|programmer|designer|scientist|researcher|professor|"
    r"electrician|carpenter|mechanic|librarian|journalist|photographer|translator|pharmacist|dentist|paramedic|"
    r"firefighter|police officer|soldier|sailor|waiter|waitress|bartender|barista|accountant|therapist|psychologist|"
    r"biologist|chemist|physicist|mathematician|statistician|historian|midwife|gardener|potter|tailor|beekeeper|"
    r"postman|civil servant|social worker|data scientist|analyst|consultant|manager|secretary|cleaner|caretaker|"
    r"childminder|paediatrician|surgeon|geologist|astronomer|economist|editor|producer|composer|conductor|drummer|"
    r"guitarist|pianist|violinist|cellist"
)
_DIETS = r"(?:vegan|vegetarian|pescatarian|teetotal|teetotaller)"
_INSTRUMENTS = (
    r"piano|guitar|violin|viola|cello|double bass|bass guitar|bass|drums|flute|clarinet|oboe|saxophone|trumpet|"
    r"trombone|tuba|harp|ukulele|banjo|mandolin|organ|accordion|harmonica|bagpipes|recorder|keyboards?"
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to state a fact.

    `topic` may contain `{thing}` and `{value}`. `weight`: how much the fact is worth keeping. `rejects`: values that
    mean something else.
    """

    topic: str
    regex: re.Pattern[str]
    weight: float
    rejects: re.Pattern[str] | None = None


def _pattern(topic: str, weight: float, regex: str, rejects: str = "") -> Pattern:
    compiled = re.compile(rf"(?<![\w'’])(?:{regex})", re.IGNORECASE)
    return Pattern(topic, compiled, weight, re.compile(rejects, re.IGNORECASE) if rejects else None)


_TIMES = (
    r"^(?:the |a )?(?:\d|early|late|morning|afternoon|evening|night|weekend|hours?|ages|minutes?|days?|weeks?|months?|"
    r"summer|winter|tomorrow|today|tonight|noon|midnight|soon|half)|\b(?:o'clock|hours|minutes)\b"
)

# If two patterns match the same words, the first one counts.
PATTERNS = (
    _pattern("name", 5.0, rf"my (?:real |full |first |last |nick)?name(?:'s|’s| is) {_NAME}"),
    _pattern("name", 5.0, rf"(?:(?:you can|please|just|everyone|everybody|people|friends|they) )?calls? me {_NAME}"),
    _pattern("pronouns", 5.0, rf"my pronouns are {_VALUE}"),
    _pattern("allergy to {value}", 5.0, rf"{_BEING}(?:(?:very|quite|badly|deathly|a bit) )?allergic to {_VALUE}"),
    _pattern("allergy to {value}", 5.0, r"I have an? (?P<value>\w+(?: \w+)?) allergy\b"),
    _pattern(
        "diet",
        4.5,
        rf"{_BEING}(?:an? )?(?:strict )?(?P<value>{_DIETS})\b",
    ),
    _pattern(
        "condition: {value}",
        4.5,
        rf"{_BEING}(?:an? )?(?P<value>lactose[ -]intolerant|gluten[ -]intolerant|coeliac|celiac|diabetic|"
        rf"colou?r[ -]?blind|left[ -]handed|dyslexic|hard of hearing|deaf|partially sighted|asthmatic)\b",
    ),
    _pattern(
        "doesn't take {value}",
        3.5,
        rf"I (?:don't|don’t|do not|can't|can’t|cannot|never) (?:eat|drink|touch) {_VALUE}",
        r"^(?:any|much|enough|so|here|before|after|until|all)\b",
    ),
    _pattern(
        "home", 4.0, rf"I {_OFTEN}live (?:in|near|outside|on|at|by) {_VALUE}", r"hope|fear|denial|the moment|past"
    ),
    _pattern("home", 4.0, rf"{_BEING}(?:living|based) (?:in|near|outside|at) {_VALUE}", r"hope|fear|denial|the moment"),
    _pattern(
        "home", 4.0, rf"(?:I|I've|I’ve|I have) {_OFTEN}(?:recently )?moved (?:back |over |out )?(?:to|into) {_NAME}"
    ),
    _pattern("origin", 3.0, rf"(?:{_BEING}(?:originally )?|I come |I originally come )from {_NAME}"),
    _pattern("place of birth", 3.0, rf"I was born (?:and raised )?in {_VALUE}"),
    _pattern("childhood", 2.5, rf"I grew up (?:in|on|near) {_VALUE}"),
    _pattern(
        "birthday",
        4.5,
        rf"my birthday(?:'s|’s| is) (?:on |in )?{_VALUE}",
        r"tomorrow|today|soon|next|coming|over|past|yesterday|^(?:on )?\w+day$",
    ),
    _pattern(
        "age",
        3.0,
        rf"{_BEING}(?P<value>\d{{1,2}}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:[- ]\w+)?) years old",
    ),
    _pattern("occupation", 4.0, rf"I {_OFTEN}work as {_VALUE}"),
    _pattern("workplace", 4.0, rf"I {_OFTEN}work (?:for|at|in|with) {_VALUE}", _TIMES),
    _pattern("occupation", 4.0, rf"{_BEING}(?:working as )?an? (?P<value>(?:\w+[ -]){{0,2}}(?:{_OCCUPATIONS}))\b"),
    _pattern(
        "occupation", 4.0, rf"my job(?:'s|’s| is) {_VALUE}", r"^(?:to|done|hard|easy|over|safe|fine|boring|stressful)\b"
    ),
    _pattern("studies", 3.5, rf"(?:I {_OFTEN}study|{_BEING}studying|I go to school at) {_VALUE}", _TIMES),
    _pattern("teaches {value}", 3.5, rf"I {_OFTEN}teach {_VALUE}", r"^(?:you|him|her|them|people)\b"),
    _pattern("{thing}'s name", 4.0, rf"my (?P<thing>(?:\w+ ){{0,2}}?\w+?)(?:'s|’s| is| are) (?:called|named) {_NAME}"),
    _pattern("{thing}'s name", 4.0, rf"my (?P<thing>(?:\w+ ){{0,2}}?\w+?)(?:'s|’s)? names? (?:is|are) {_NAME}"),
    _pattern(
        "{thing}'s name", 4.0, rf"I(?: have|'ve got|’ve got) an? (?P<thing>(?:\w+ )?\w+) (?:called|named) {_NAME}"
    ),
    _pattern("{thing}'s home", 2.5, rf"my (?P<thing>{_RELATIVE}) lives (?:in|near) {_VALUE}"),
    _pattern("{thing}'s work", 2.5, rf"my (?P<thing>{_RELATIVE}) works (?:as|for|at|in) {_VALUE}", _TIMES),
    _pattern(
        "has {thing}",
        3.0,
        rf"I(?: have|'ve got|’ve got) (?P<value>(?:an?|one|two|three|four|five|six|\d) (?:\w+ )?(?P<thing>{_KEPT}))\b",
    ),
    _pattern("marriage", 3.0, rf"{_BEING}(?P<value>married|divorced|widowed)\b"),
    _pattern(
        "favourite {thing}",
        3.0,
        rf"my (?:all[- ]time )?favou?rite (?P<thing>(?:\w+ ){{0,2}}?\w+?)(?:'s|’s| is| are| would be) {_VALUE}",
    ),
    _pattern(
        "preference", 2.5, rf"I (?:really |definitely |actually |much |also )*prefer {_VALUE}", r"^(?:the|to|not)\b"
    ),
    _pattern("preference", 2.5, rf"I (?:always|usually|generally) prefer {_VALUE}", r"^(?:to|not)\b"),
    _pattern("language: {value}", 3.0, rf"I {_OFTEN}(?:speak|am fluent in) {_NAME}"),
    _pattern("learning", 2.5, rf"{_BEING}learning (?:how to |to )?{_VALUE}", r"^(?:a lot|so much|things|about)\b"),
    _pattern("plays {value}", 2.5, rf"I {_OFTEN}play (?:the )?(?P<value>{_INSTRUMENTS})\b"),
    _pattern("collects {value}", 2.5, rf"I {_OFTEN}collect {_VALUE}"),
    _pattern("time zone", 3.0, rf"my time ?zone(?:'s|’s| is) {_VALUE}"),
    _pattern(
        "fear of {value}",
        2.5,
        rf"{_BEING}(?:really |terribly )?(?:afraid|scared|terrified) of {_VALUE}",
        r"^(?:the|losing|that)\b",
    ),
    _pattern(
        "taste for {value}",
        1.5,
        rf"I {_OFTEN}(?:love|adore|hate|can't stand|can’t stand|cannot stand) {_VALUE}",
        r"^(?:the|to|being|doing|when)\b|\w{4,}ing\b.* \w+",
    ),
)

_NOT = r" (?:don't|don’t|do not)"
_GONE = r"(?:any ?more|any longer)"
# Statements that something is no longer true, without a new value.
RETRACTIONS = tuple(
    (topic, re.compile(rf"\bI{regex}", re.IGNORECASE))
    for topic, regex in (
        ("home", rf"{_NOT} live (?:in|near|at) (?P<value>[^.,;!?]+?) {_GONE}\b"),
        ("home", r" no longer live (?:in|near|at) (?P<value>[^.,;!?]+)"),
        ("home", rf"{_NOT} live there {_GONE}\b"),
        ("workplace", rf"{_NOT} work (?:there|(?:for|at|in) [^.,;!?]+?) {_GONE}\b"),
        ("workplace", r" (?:no longer work|quit my job|lost my job|left my job|retired)\b"),
        ("occupation", rf"{_NOT} work (?:there|as [^.,;!?]+?) {_GONE}\b"),
        ("occupation", r" (?:no longer work as|quit my job|lost my job|left my job|retired)\b"),
        ("diet", rf"(?: am|'m|’m) not (?:an? )?(?P<value>{_DIETS}) {_GONE}\b"),
        ("diet", rf"(?: am|'m|’m) no longer (?:an? )?(?P<value>{_DIETS})\b"),
        ("marriage", rf"(?: am|'m|’m) (?:not married {_GONE}|no longer married)\b"),
    )
)

_TOPIC_WEIGHTS = tuple(
    (re.compile(re.escape(each.topic).replace(r"\{value\}", ".+").replace(r"\{thing\}", ".+") + "$"), each.weight)
    for each in PATTERNS
)


def weight_of(topic: str) -> float:
    """Return how much a fact of this topic is worth telling. A topic that no pattern has any more is worth 1.0."""
    return next((weight for regex, weight in _TOPIC_WEIGHTS if regex.match(topic)), 1.0)


# If these words come before a match, it is not a statement of fact but a wish, a guess, a quotation or the past.
UNLIKELY_BEFORE = re.compile(
    r"\b(?:if|unless|wish(?:es)?|imagine|imagin\w+|pretend\w*|suppose|said|says|say|saying|told|tells|asked|asks|"
    r"thinks?|thought|whether|dream\w*|as though|would|could|might|maybe|perhaps|used to|when|not that|character|"
    r"in (?:the|this|my) (?:game|book|film|movie|story)|she's like|he's like|they're like|was like)\b",
    re.IGNORECASE,
)
# A match is rejected if its value begins with one of these words.
UNLIKELY_VALUE = re.compile(
    r"^(?:this|that|these|those|it|its|it's|you|your|yours|him|her|hers|them|their|us|our|here|there|what|how|why|who|"
    r"when|where|one|ones|some|something|anything|everything|nothing|someone|somebody|everyone|everybody|nobody|"
    r"both|either|neither|all|not|never|no|like|going|gonna|just|a bit|a lot|a little|back|my own|each other|myself)\b",
    re.IGNORECASE,
)

# Groups of things of the same kind, of which a person may prefer one.
_DOMAINS = tuple(
    frozenset(listed.split())
    for listed in (
        "tea coffee cocoa water juice milk lemonade beer wine cider whisky gin rum soda cola",
        "cat dog rabbit parrot",
        "morning evening afternoon night",
        "window aisle",
        "winter summer spring autumn",
        "sea beach mountain lake forest city country",
        "car train bus bike bicycle plane ferry",
        "email phone text call letter",
        "book film movie series podcast radio",
        "meat fish vegetable",
        "red blue green yellow black white purple orange pink",
        "rice pasta potato noodle bread",
        "sweet savoury salty sour spicy",
        "mac windows linux",
        "keyboard controller mouse gamepad",
        "english german french spanish italian portuguese dutch",
    )
)


def same_domain(one: str, other: str) -> bool:
    """Return whether two preferred things are of the same kind, so that the later one replaces the earlier one."""
    first, second = (set(re.findall(r"[a-z]+", value.casefold())) for value in (one, other))
    # The lists contain singular forms, so 'cats' must also match 'cat'.
    first |= {word.removesuffix("s") for word in first}
    second |= {word.removesuffix("s") for word in second}
    return any(first & domain and second & domain for domain in _DOMAINS) or bool(
        {word for word in first & second if len(word) > 3}
    )
