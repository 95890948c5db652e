"""When the bot speaks: a table of situations, and properties that hold for any text in any situation."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.brain.decider import Decision, PendingReply, Reason, Situation, decide
from bot.brain.wakeword import call_names
from bot.guild import VoiceMode
from compaction.sentence_cache import clear_sentence_caches

NAMES = ("Roomtone", "Room tone")
OTHERS = frozenset().union(*map(call_names, ("Ben Okafor", "Chloe", "Juke")))
COMPANY = Situation(people=3, wake_names=NAMES, other_names=OTHERS)
ALONE = Situation(people=1, wake_names=NAMES, other_names=call_names("Juke"))
ENGAGED = replace(COMPANY, engaged=True)
# The same without a language model.
UNAIDED = replace(ENGAGED, can_skip=False, just_answered=True)
FREE = replace(COMPANY, mode=VoiceMode.FREE)
QUESTION = "When does the concert start?"


def yes(
    reason: Reason, *, supersedes: bool = False, may_skip: bool = False, answers_without_model: bool = False
) -> Decision:
    """Return a decision to speak."""
    return Decision(True, reason, supersedes, may_skip, answers_without_model)


def no(reason: Reason) -> Decision:
    """Return a decision to be silent."""
    return Decision(False, reason)


# A question right after an answer is answered without a model, too.
GOES_ON = yes(Reason.ENGAGED, may_skip=True, answers_without_model=True)


@pytest.mark.parametrize(
    ("text", "situation", "decision"),
    [
        # The bot's name.
        ("Roomtone, hello", COMPANY, yes(Reason.WAKE_NAME)),
        ("Rome tone, hello", COMPANY, yes(Reason.WAKE_NAME)),
        ("Roomtone, hello", replace(COMPANY, mode=VoiceMode.NAME), yes(Reason.WAKE_NAME)),
        ("Roomtone, hello", replace(COMPANY, pending=PendingReply.CERTAIN), yes(Reason.WAKE_NAME, supersedes=True)),
        ("Roomtone, hello", replace(COMPANY, pending=PendingReply.MAY_SKIP), yes(Reason.WAKE_NAME, supersedes=True)),
        ("Roomtone, ask Ben.", COMPANY, yes(Reason.WAKE_NAME)),
        ("Jarvis, hello", replace(COMPANY, wake_names=("Jarvis",)), yes(Reason.WAKE_NAME)),
        ("Roomtone, hello", replace(COMPANY, wake_names=("Jarvis",)), no(Reason.NOT_ADDRESSED)),
        ("I asked Roomtone yesterday.", COMPANY, no(Reason.MENTIONED)),
        ("I asked Roomtone yesterday.", replace(COMPANY, mode=VoiceMode.NAME), no(Reason.MENTIONED)),
        ("I asked Roomtone yesterday.", ALONE, yes(Reason.ALONE_TOGETHER)),
        # A name that was misheard, before what people say to a bot.
        ("Rent on, what can you do?", COMPANY, yes(Reason.WAKE_NAME)),
        ("Hey rent on, what can you do?", COMPANY, yes(Reason.WAKE_NAME)),
        ("What can you do, Renton?", replace(COMPANY, mode=VoiceMode.NAME), yes(Reason.WAKE_NAME)),
        (
            "Rent on, what can you do?",
            replace(COMPANY, other_names=call_names("Rent On")),
            no(Reason.ADDRESSED_TO_OTHER),
        ),
        ("Rent on, what do we pay?", COMPANY, no(Reason.NOT_ADDRESSED)),
        ("Rachel, what can you do?", COMPANY, no(Reason.NOT_ADDRESSED)),
        ("Ben, what can you do?", COMPANY, no(Reason.ADDRESSED_TO_OTHER)),
        # Several people, and the bot is not addressed.
        ("hello there", COMPANY, no(Reason.NOT_ADDRESSED)),
        (QUESTION, COMPANY, no(Reason.NOT_ADDRESSED)),
        # Alone with one person.
        ("hello there", ALONE, yes(Reason.ALONE_TOGETHER)),
        ("hello there", replace(ALONE, pending=PendingReply.CERTAIN), yes(Reason.ALONE_TOGETHER, supersedes=True)),
        ("hello there", replace(ALONE, mode=VoiceMode.NAME), no(Reason.NOT_ADDRESSED)),
        ("Juke, play something.", ALONE, no(Reason.ADDRESSED_TO_OTHER)),
        ("Mm-hm.", ALONE, no(Reason.WANTS_NO_ANSWER)),
        ("Yes.", replace(ALONE, bot_asked=True), yes(Reason.ALONE_TOGETHER)),
        ("Really?", ALONE, yes(Reason.ALONE_TOGETHER)),
        # A person whom the bot has answered continues.
        ("And on Sunday?", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("I mean the other one.", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("no that's not what I said", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("nein das meinte ich nicht", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("That's wrong", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("We have to leave at nine.", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("We have to leave at nine.", UNAIDED, no(Reason.NOT_ADDRESSED)),
        ("We have to leave at nine.", replace(UNAIDED, bot_asked=True), GOES_ON),
        ("And on Sunday?", UNAIDED, GOES_ON),
        ("And on Sunday?", replace(UNAIDED, just_answered=False), no(Reason.NOT_ADDRESSED)),
        ("And on Sunday?", replace(ENGAGED, just_answered=True), GOES_ON),
        ("I mean the other one.", replace(ENGAGED, just_answered=True), yes(Reason.ENGAGED, may_skip=True)),
        ("Yes, please.", replace(ENGAGED, bot_asked=True), yes(Reason.ENGAGED, may_skip=True)),
        ("And on Sunday?", replace(ENGAGED, mode=VoiceMode.NAME), no(Reason.NOT_ADDRESSED)),
        ("Ben, are you coming?", ENGAGED, no(Reason.ADDRESSED_TO_OTHER)),
        ("What about you, Chloe?", ENGAGED, no(Reason.ADDRESSED_TO_OTHER)),
        ("Did Ben say that?", ENGAGED, yes(Reason.ENGAGED, may_skip=True)),
        ("Oh, nice.", ENGAGED, no(Reason.WANTS_NO_ANSWER)),
        ("Stop, stop, stop!", ENGAGED, no(Reason.WANTS_NO_ANSWER)),
        ("Stop, stop, stop!", ALONE, no(Reason.WANTS_NO_ANSWER)),
        ("Roomtone, stop!", COMPANY, no(Reason.WANTS_NO_ANSWER)),
        ("And on Sunday?", replace(ENGAGED, pending=PendingReply.CERTAIN), no(Reason.BETTER_WAITS)),
        (
            "And on Sunday?",
            replace(ENGAGED, pending=PendingReply.MAY_SKIP),
            yes(Reason.ENGAGED, supersedes=True, may_skip=True),
        ),
        # A question to everybody in the room.
        (QUESTION, FREE, yes(Reason.ROOM_QUESTION, may_skip=True)),
        ("The concert starts at seven.", FREE, no(Reason.NOT_ADDRESSED)),
        ("What?", FREE, no(Reason.NOT_ADDRESSED)),
        ("Chloe, when does the concert start?", FREE, no(Reason.ADDRESSED_TO_OTHER)),
        (QUESTION, replace(FREE, busy=True), no(Reason.BUSY)),
        (QUESTION, replace(FREE, can_skip=False), no(Reason.NOT_ADDRESSED)),
        (QUESTION, replace(FREE, pending=PendingReply.CERTAIN), no(Reason.BETTER_WAITS)),
        # Situations in which the bot never speaks.
        ("Roomtone, hello", replace(COMPANY, silenced=True), no(Reason.SILENCED)),
        ("Roomtone, hello", replace(COMPANY, over_ceiling=True), no(Reason.OVER_CEILING)),
        ("hello there", replace(COMPANY, silenced=True), no(Reason.NOT_ADDRESSED)),
        ("Roomtone, hello", replace(ALONE, opted_out=True), no(Reason.OPTED_OUT)),
        (" ... ", ALONE, no(Reason.NOTHING_SAID)),
        ("", COMPANY, no(Reason.NOTHING_SAID)),
        ("[laughter]", ALONE, no(Reason.EFFECT)),
        ("(coughs)", ENGAGED, no(Reason.EFFECT)),
    ],
)
def test_decisions(text: str, situation: Situation, decision: Decision) -> None:
    """Each text and situation leads to the expected decision with the expected reason."""
    assert decide(text, situation) == decision


@pytest.mark.parametrize(
    ("text", "situation", "for_bot"),
    [
        ("Roomtone, stop recording.", COMPANY, True),
        ("Roomtone, stop!", COMPANY, True),
        ("Roomtone, hello", replace(COMPANY, silenced=True), True),
        ("Roomtone, hello", replace(COMPANY, over_ceiling=True), True),
        ("I asked Roomtone yesterday.", COMPANY, False),
        (QUESTION, COMPANY, False),
        # Nobody else is asked, but what somebody tells is told.
        (QUESTION, ALONE, True),
        ("Stop listening.", ALONE, True),
        ("The concert starts at seven.", ALONE, False),
        ("And on Sunday?", UNAIDED, True),
        ("And on Sunday?", ENGAGED, False),
        (QUESTION, FREE, False),
        ("Ben, are you coming?", ENGAGED, False),
    ],
)
def test_what_is_said_to_the_bot_is_no_part_of_the_talk(text: str, situation: Situation, for_bot: bool) -> None:
    """It calls the bot, or asks where nobody else is meant, also while the bot may not answer."""
    assert decide(text, situation).for_bot is for_bot


@pytest.mark.parametrize(
    ("situation", "decision"),
    [
        (COMPANY, no(Reason.NOTHING_SAID)),
        (replace(COMPANY, long_silence=True), yes(Reason.QUIET_ROOM, may_skip=True)),
        (replace(COMPANY, long_silence=True, mode=VoiceMode.NAME), no(Reason.NOT_ADDRESSED)),
        (replace(COMPANY, long_silence=True, busy=True), no(Reason.BUSY)),
        (replace(COMPANY, long_silence=True, silenced=True), no(Reason.SILENCED)),
        (replace(COMPANY, long_silence=True, over_ceiling=True), no(Reason.OVER_CEILING)),
        (replace(COMPANY, long_silence=True, can_skip=False), no(Reason.NOTHING_SAID)),
        (replace(COMPANY, long_silence=True, people=0), no(Reason.NOTHING_SAID)),
        (replace(FREE, screen_changed=True), yes(Reason.SCREEN, may_skip=True)),
        (replace(ENGAGED, screen_changed=True), yes(Reason.SCREEN, may_skip=True)),
        (replace(ALONE, screen_changed=True), yes(Reason.SCREEN, may_skip=True)),
        (replace(COMPANY, screen_changed=True), no(Reason.NOT_ADDRESSED)),
        (replace(FREE, screen_changed=True, pending=PendingReply.CERTAIN), no(Reason.BUSY)),
    ],
)
def test_what_the_bot_says_of_its_own_accord(situation: Situation, decision: Decision) -> None:
    """Without a question the bot speaks only after a long silence or a screen change, never while somebody speaks, and
    the model may always skip.
    """
    assert decide(None, situation) == decision


TEXTS = st.one_of(
    st.text(),
    st.sampled_from([QUESTION, "Roomtone, hello", "Ben, hello", "Yes.", "And on Sunday?", "Room tone", "(laughs)"]),
)
SAID = st.one_of(st.none(), TEXTS)
SITUATIONS = st.builds(
    Situation,
    people=st.integers(0, 30),
    wake_names=st.sampled_from([NAMES, ("Jarvis",), ("Ada",), ()]),
    mode=st.sampled_from(VoiceMode),
    other_names=st.frozensets(st.sampled_from(["ben", "chloe", "juke"])),
    engaged=st.booleans(),
    just_answered=st.booleans(),
    bot_asked=st.booleans(),
    opted_out=st.booleans(),
    silenced=st.booleans(),
    over_ceiling=st.booleans(),
    pending=st.sampled_from(PendingReply),
    busy=st.booleans(),
    can_skip=st.booleans(),
    screen_changed=st.booleans(),
    long_silence=st.booleans(),
)


@settings(deadline=None)
@given(TEXTS, SITUATIONS)
def test_another_bot_is_never_answered(text: str, situation: Situation) -> None:
    """Speech of another bot is never answered, in any situation."""
    assert not decide(text, replace(situation, by_bot=True)).answer


@settings(deadline=None)
@given(SAID, SITUATIONS)
def test_it_never_speaks_where_it_must_not(said: str | None, situation: Situation) -> None:
    """The bot never speaks while silenced, over the hourly ceiling, or to a person who has opted out."""
    for forbidden in (
        replace(situation, silenced=True),
        replace(situation, over_ceiling=True),
        *([] if said is None else [replace(situation, opted_out=True)]),
    ):
        assert not decide(said, forbidden).answer


@settings(deadline=None)
@given(st.text(), st.sampled_from(["Roomtone, {}", "Hey Roomtone, {}", "{}, Roomtone?", "Room tone. {}"]), SITUATIONS)
def test_its_name_is_always_answered(text: str, form: str, situation: Situation) -> None:
    """A person who may speak with the bot and calls it by name always gets an answer, and the model may not skip it."""
    allowed = replace(situation, opted_out=False, silenced=False, over_ceiling=False, wake_names=NAMES)
    said = form.format(text)
    decision = decide(said, allowed)
    if decision.reason in {Reason.EFFECT, Reason.WANTS_NO_ANSWER}:  # '*Roomtone, sings*', 'Roomtone, stop'
        return
    assert (decision.answer, decision.reason, decision.may_skip) == (True, Reason.WAKE_NAME, False)


@settings(deadline=None)
@given(SAID, SITUATIONS)
def test_the_same_situation_has_the_same_answer(said: str | None, situation: Situation) -> None:
    """The same situation always gives the same decision. Only an answer replaces a pending one, and a reply that may be
    skipped never replaces a certain one.
    """
    decision = decide(said, situation)
    assert decide(said, situation) == decision
    assert decision.supersedes == (decision.answer and situation.pending is not PendingReply.NONE)
    assert not (decision.answer and decision.may_skip and situation.pending is PendingReply.CERTAIN)
    assert decision.may_skip <= decision.answer


def test_what_was_said_is_remembered_within_bounds_and_only_until_it_is_forgotten() -> None:
    """Decisions about the same words are worked out once. Whoever talks for weeks fills no memory with it, and nothing
    of it is left when words are forgotten.
    """
    said = "Roomtone, ask Ben, and then post the zanzibar link."
    decide(said, COMPANY)
    caches: list[Any] = [
        each
        for name, module in sys.modules.items()
        if name.startswith("bot.brain.")
        for each in vars(module).values()
        # A cache of one value holds a table, and nothing that people said.
        if hasattr(each, "cache_info") and each.__module__ == name and each.cache_info().maxsize != 1
    ]
    assert all(each.cache_info().maxsize for each in caches)
    assert any(each.cache_info().currsize for each in caches)
    clear_sentence_caches()
    assert not any(each.cache_info().currsize for each in caches)
