"""When people who speak over the bot stop it, and when they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.backchannel import OverlapIntent, classify_overlap
from voice.speaking.barge_in import (
    BURST_GAP_S,
    DUCK_AFTER_S,
    GOING_ON_S,
    LONGEST_PAUSE_S,
    Answering,
    BargeInAction,
    BargeInDetector,
)

M = OverlapIntent


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Mm-hm.", M.CONTINUE),
        ("Mhm, yeah.", M.CONTINUE),
        ("Hahahaha!", M.CONTINUE),
        ("[laughter]", M.CONTINUE),
        ("(coughs)", M.CONTINUE),
        ("Okay, right.", M.CONTINUE),
        ("Oh wow, nice.", M.CONTINUE),
        ("That's right.", M.CONTINUE),
        ("…", M.CONTINUE),
        ("", M.CONTINUE),
        ("Yeah yeah yeah yeah yeah.", M.YIELD),
        ("No.", M.YIELD),
        ("What?", M.YIELD),
        ("Yes, but we leave on Friday.", M.YIELD),
        ("Good morning everybody", M.YIELD),
        ("Stop!", M.STOP),
        ("Shut up.", M.STOP),
        ("Hold on", M.STOP),
        ("That’s enough.", M.STOP),
        ("Don't stop.", M.YIELD),
        ("We could wait.", M.YIELD),
        ("Ach so.", M.CONTINUE),
        ("D'accord.", M.CONTINUE),
        ("Sí, claro.", M.CONTINUE),
        ("Warte mal!", M.STOP),
        ("Stopp!", M.STOP),
        ("¡Cállate!", M.STOP),
        ("Aspetta un attimo", M.STOP),
        ("Ja, aber nicht heute.", M.YIELD),
    ],
)
def test_words_say_go_on_make_room_or_be_silent(text: str, meaning: OverlapIntent) -> None:
    """Backchannels let the bot go on, a short 'stop' asks for silence, and any other speech takes the turn."""
    assert classify_overlap(text) is meaning


ADA, BO = 1, 2
WINDOW_S = 0.032
DUCK, PAUSE, RESUME = BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.RESUME
ENDS = frozenset({BargeInAction.GIVE_WAY, BargeInAction.STOP, BargeInAction.SILENCE})
CONTINUE, YIELD, STOP = OverlapIntent.CONTINUE, OverlapIntent.YIELD, OverlapIntent.STOP


@dataclass
class Table:
    """Simulates people around a speaking bot, window by window. `acts` has each decision with its time."""

    audible: bool = True
    answering: Answering | None = None
    machine: BargeInDetector = field(default_factory=BargeInDetector)
    now: float = 100.0
    voiced: dict[int, float] = field(default_factory=dict)
    acts: list[tuple[float, BargeInAction]] = field(default_factory=list)

    @property
    def done(self) -> list[BargeInAction]:
        return [act for _, act in self.acts]

    def speak(self, *people: int, s: float) -> None:
        """Let these people speak for `s` seconds while the others are silent."""
        for _ in range(round(s / WINDOW_S)):
            self.now += WINDOW_S
            for user_id in people:
                self.voiced[user_id] = self.voiced.get(user_id, 0.0) + WINDOW_S
            self.keep(self.machine.update(self.voiced, audible=self.audible, now=self.now, answering=self.answering))

    def end_speech(self) -> None:
        self.voiced.clear()

    def means(
        self, user_id: int, meaning: OverlapIntent, *, started_at: float = 100.0, ended_at: float | None = None
    ) -> None:
        self.keep(
            self.machine.on_words(
                user_id,
                meaning,
                started_at=started_at,
                ended_at=self.now if ended_at is None else ended_at,
                audible=self.audible,
                now=self.now,
                answering=self.answering,
            )
        )

    def keep(self, act: BargeInAction | None) -> None:
        if act is not None:
            self.acts.append((self.now, act))
        if act in ENDS:
            self.audible, self.answering = False, None


Step: TypeAlias = Callable[[Table], None]


def voiced(*people: int, s: float) -> Step:
    """Let these people speak; nobody: let time pass."""
    return lambda table: table.speak(*people, s=s)


def meant(user_id: int, meaning: OverlapIntent, **when: float) -> Step:
    """Let words of somebody be recognised."""
    return lambda table: table.means(user_id, meaning, **when)


LONG_WORDS = (voiced(ADA, s=1.5), voiced(s=0.6), Table.end_speech)


GIVE_WAY = BargeInAction.GIVE_WAY
# The clock of a table begins at 100 s.
SOUNDS_NOW, SOUNDS_LATER = Answering(ADA, 99.6, 99.7, 100.0), Answering(ADA, 99.6, 99.7)
LISTENED = Answering(ADA, 95.0, 95.1, 100.0 - GOING_ON_S - 0.1)


@pytest.mark.parametrize(
    ("answering", "steps", "acts"),
    [
        pytest.param(
            None,
            (voiced(ADA, s=1.5), voiced(s=1.0), Table.end_speech, meant(ADA, YIELD)),
            (DUCK, PAUSE, BargeInAction.STOP),
            id="real words make it softer, pause it and stop it",
        ),
        pytest.param(None, (voiced(ADA, s=DUCK_AFTER_S - WINDOW_S), voiced(s=0.5)), (), id="a click"),
        pytest.param(
            None,
            (voiced(ADA, s=0.4), voiced(s=0.5), meant(ADA, CONTINUE), meant(ADA, YIELD)),
            (DUCK, RESUME),
            id="a backchannel makes it softer for a moment, and its text changes nothing",
        ),
        pytest.param(
            None,
            (voiced(ADA, s=1.2), voiced(s=1.0), Table.end_speech, meant(ADA, CONTINUE)),
            (DUCK, PAUSE, RESUME),
            id="a long laugh is a false interruption, and the reply goes on",
        ),
        pytest.param(None, (voiced(ADA, s=0.3), meant(ADA, STOP)), (DUCK, BargeInAction.SILENCE), id="a short 'Stop!'"),
        pytest.param(
            None,
            (voiced(ADA, s=1.0), meant(ADA, YIELD, ended_at=99.0)),
            (DUCK, PAUSE),
            id="the words of a sentence before the reply judge nothing",
        ),
        pytest.param(
            None,
            (*LONG_WORDS, voiced(ADA, s=0.1), voiced(s=0.3), meant(ADA, CONTINUE, started_at=102.1)),
            (DUCK, PAUSE),
            id="a click that is recognised first does not give the floor back",
        ),
        pytest.param(
            None,
            (*LONG_WORDS, meant(ADA, CONTINUE, started_at=102.1), meant(ADA, YIELD, ended_at=101.5)),
            (DUCK, PAUSE, BargeInAction.STOP),
            id="the words of the interruption itself do",
        ),
        pytest.param(None, (voiced(ADA, BO, s=0.5), voiced(s=0.5)), (DUCK, RESUME), id="two backchannels are no words"),
        pytest.param(None, (voiced(ADA, BO, s=0.9), meant(ADA, CONTINUE)), (DUCK, PAUSE), id="one laughs"),
        pytest.param(
            None,
            (voiced(ADA, BO, s=0.9), meant(ADA, CONTINUE), meant(BO, YIELD)),
            (DUCK, PAUSE, BargeInAction.STOP),
            id="one person's laugh does not hide another's words",
        ),
        pytest.param(
            None,
            (voiced(ADA, s=0.8), Table.end_speech, voiced(s=LONGEST_PAUSE_S + 0.5)),
            (DUCK, PAUSE, BargeInAction.STOP),
            id="a text that never comes",
        ),
        # Whoever asked and goes on stops the answer sooner: the bot is silent after a syllable, and gives way unless
        # that was a sign of listening.
        pytest.param(SOUNDS_NOW, (voiced(ADA, s=0.23), meant(ADA, YIELD)), (PAUSE, GIVE_WAY), id="who asked goes on"),
        pytest.param(SOUNDS_NOW, (voiced(ADA, s=0.23), meant(ADA, CONTINUE)), (PAUSE, RESUME), id="who asked hums"),
        pytest.param(SOUNDS_NOW, (voiced(ADA, s=0.16), voiced(s=0.5)), (), id="who asked clicks"),
        pytest.param(SOUNDS_NOW, (voiced(ADA, s=0.23), meant(ADA, STOP)), (PAUSE, BargeInAction.SILENCE), id="stop"),
        pytest.param(
            SOUNDS_NOW, (voiced(BO, s=1.0), meant(BO, YIELD)), (DUCK, PAUSE, BargeInAction.STOP), id="another person"
        ),
        pytest.param(
            SOUNDS_NOW,
            (voiced(ADA, s=0.23), meant(ADA, CONTINUE), voiced(ADA, s=0.23), meant(ADA, YIELD)),
            (PAUSE, RESUME, PAUSE, GIVE_WAY),
            id="'yeah, but'",
        ),
        pytest.param(
            SOUNDS_NOW,
            (voiced(ADA, s=0.23), voiced(s=LONGEST_PAUSE_S)),
            (PAUSE, GIVE_WAY),
            id="words that never come",
        ),
        pytest.param(
            LISTENED, (voiced(ADA, s=1.0), meant(ADA, YIELD)), (DUCK, PAUSE, BargeInAction.STOP), id="who has listened"
        ),
        pytest.param(
            LISTENED, (voiced(ADA, s=0.4), voiced(s=0.5), meant(ADA, YIELD)), (DUCK, RESUME), id="a word too few"
        ),
    ],
)
def test_who_speaks_over_it_is_told_from_who_only_listens(
    answering: Answering | None, steps: tuple[Step, ...], acts: tuple[BargeInAction, ...]
) -> None:
    table = Table(answering=answering)
    for step in steps:
        step(table)
    assert tuple(table.done) == acts


@pytest.mark.parametrize(
    ("who", "started_at", "acts"),
    [(ADA, 100.0, [PAUSE, GIVE_WAY]), (ADA, 100.1 + GOING_ON_S, []), (BO, 100.0, [])],
)
def test_an_answer_that_is_still_made_gives_way_too(who: int, started_at: float, acts: list[BargeInAction]) -> None:
    """It does not begin over who goes on. Others may talk, and who asked, too, after a while."""
    table = Table(audible=False, answering=SOUNDS_LATER, now=started_at)
    table.speak(who, s=0.4)
    table.means(who, YIELD, started_at=started_at)
    assert table.done == acts


@pytest.mark.parametrize(("spoken_s", "acts"), [(0.6, [DUCK]), (0.8, [DUCK, PAUSE])])
def test_what_was_said_before_the_bot_began_is_not_said_over_it(spoken_s: float, acts: list[BargeInAction]) -> None:
    """A person who was already speaking when the bot began pauses the bot 700 ms after its first word."""
    table = Table(audible=False)
    table.speak(ADA, s=3.0)
    table.audible = True
    table.speak(ADA, s=spoken_s)
    assert table.done == acts


BURSTS = st.lists(
    st.tuples(st.integers(1, 20), st.integers(12, 60), st.sampled_from([ADA, BO])), min_size=1, max_size=20
)


@given(BURSTS)
def test_short_bursts_never_silence_it(bursts: list[tuple[int, int, int]]) -> None:
    """Short noises with silence between them never pause or stop the bot, however many there are."""
    table = Table()
    for voiced, silent, user_id in bursts:
        table.speak(user_id, s=voiced * WINDOW_S)
        table.speak(s=silent * WINDOW_S)
    assert 12 * WINDOW_S > BURST_GAP_S
    assert not {BargeInAction.PAUSE, *ENDS} & set(table.done)
    assert table.machine.level is BargeInAction.RESUME


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("speak"), st.sets(st.sampled_from([ADA, BO])), st.integers(1, 40)),
        st.tuples(st.just("mean"), st.sampled_from([ADA, BO]), st.sampled_from(OverlapIntent)),
        st.tuples(st.just("audible"), st.booleans(), st.none()),
        st.tuples(st.just("end"), st.none(), st.none()),
    ),
    max_size=40,
)  # fmt: skip


@given(EVENTS)
def test_whatever_happens_the_acts_fit_together(script: list[tuple[str, object, object]]) -> None:
    """For any events, a silent bot only gets its volume back, every pause ends, and only real changes are reported."""
    table = Table()
    level = BargeInAction.RESUME
    for what, first, second in script:
        audible = table.audible if what != "audible" else bool(first)
        before = len(table.acts)
        match what:
            case "speak":
                assert isinstance(first, set)
                assert isinstance(second, int)
                table.speak(*first, s=second * WINDOW_S)
            case "mean":
                assert isinstance(first, int)
                assert isinstance(second, OverlapIntent)
                table.means(first, second)
            case "audible":
                table.audible = bool(first)
            case _:
                table.end_speech()
        for act in table.done[before:]:
            assert act is not level
            assert audible or act is BargeInAction.RESUME
            level = BargeInAction.RESUME if act in ENDS else act
        assert table.machine.level is level
    table.audible = False
    table.speak(s=0.1)
    assert table.machine.level is BargeInAction.RESUME
