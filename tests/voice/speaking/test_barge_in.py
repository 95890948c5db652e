"""When people who speak over the bot stop it, and when they do not."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from voice.speaking.backchannel import OverlapIntent
from voice.speaking.barge_in import BURST_GAP_S, LONGEST_PAUSE_S, BargeInAction, BargeInDetector, PlaybackLevel

ADA, BO = 1, 2
WINDOW_S = 0.032
DUCK_S, STOP_S = 0.2, 0.7


@dataclass
class Table:
    """Simulates people around a speaking bot, window by window. `acts` has each decision with its time."""

    audible: bool = True
    machine: BargeInDetector = field(default_factory=lambda: BargeInDetector(duck_after_s=DUCK_S, stop_after_s=STOP_S))
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
            self.keep(self.machine.update(self.voiced, audible=self.audible, now=self.now))

    def end_speech(self) -> None:
        """End the current speech of everybody."""
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
            )
        )

    def keep(self, act: BargeInAction | None) -> None:
        if act is not None:
            self.acts.append((self.now, act))
        if act is BargeInAction.STOP:
            self.audible = False


def test_speech_over_the_bot_ducks_pauses_and_then_stops_it() -> None:
    """Speech over the bot makes it softer after 200 ms, pauses it after 700 ms, and stops it if the words were real."""
    table = Table()
    table.speak(ADA, s=1.5)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE]
    (ducked_at, _), (paused_at, _) = table.acts
    assert DUCK_S <= ducked_at - 100.0 <= DUCK_S + 2 * WINDOW_S
    assert STOP_S <= paused_at - 100.0 <= STOP_S + 2 * WINDOW_S
    table.speak(s=1.0)
    table.end_speech()
    table.means(ADA, OverlapIntent.YIELD)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.STOP]
    assert table.machine.level is PlaybackLevel.FULL


def test_a_backchannel_only_ducks_it() -> None:
    """A short 'mm-hm' makes the bot softer for a moment, and its text changes nothing."""
    table = Table()
    table.speak(ADA, s=0.4)
    table.speak(s=0.5)
    table.means(ADA, OverlapIntent.CONTINUE)
    table.means(ADA, OverlapIntent.YIELD)
    assert table.done == [BargeInAction.DUCK, BargeInAction.RESUME]


def test_a_long_laugh_is_a_false_interruption_and_the_reply_goes_on() -> None:
    """A long laugh pauses the bot, which goes on once the recogniser shows that it was a laugh."""
    table = Table()
    table.speak(ADA, s=1.2)
    table.speak(s=1.0)
    table.end_speech()
    table.means(ADA, OverlapIntent.CONTINUE)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.RESUME]


def test_stop_is_obeyed_however_short_it_is() -> None:
    """'Stop!' stops the bot, although it lasts only 300 ms."""
    table = Table()
    table.speak(ADA, s=0.3)
    table.means(ADA, OverlapIntent.STOP)
    assert table.done == [BargeInAction.DUCK, BargeInAction.STOP]


def test_what_was_said_before_the_bot_began_is_not_said_over_it() -> None:
    """A person who was already speaking when the bot began pauses the bot 700 ms after its first word."""
    table = Table(audible=False)
    table.speak(ADA, s=3.0)
    table.audible = True
    table.speak(ADA, s=0.6)
    assert table.done == [BargeInAction.DUCK]
    table.speak(ADA, s=0.2)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE]


def test_the_words_of_an_earlier_sentence_judge_nothing() -> None:
    """The text of a sentence that ended before the reply began does not stop the reply."""
    table = Table()
    table.speak(ADA, s=1.0)
    table.means(ADA, OverlapIntent.YIELD, ended_at=99.0)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE]


def test_a_click_after_an_objection_does_not_give_the_floor_back() -> None:
    """A click is judged before the real words that the recogniser still works on, so it does not end the pause."""
    table = Table()
    table.speak(ADA, s=1.5)
    table.speak(s=0.6)
    table.end_speech()
    clicked_at = table.now
    table.speak(ADA, s=0.1)
    table.speak(s=0.3)
    table.end_speech()
    table.means(ADA, OverlapIntent.CONTINUE, started_at=clicked_at)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE]
    table.means(ADA, OverlapIntent.YIELD, ended_at=101.5)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.STOP]


def test_several_speakers_are_counted_each_for_themselves() -> None:
    """Each speaker is judged separately: two backchannels do not interrupt, and one person's laugh does not hide
    another's words.
    """
    table = Table()
    table.speak(ADA, BO, s=0.5)
    table.speak(s=0.5)
    table.end_speech()
    assert table.done == [BargeInAction.DUCK, BargeInAction.RESUME]
    table.acts.clear()
    table.speak(ADA, BO, s=0.9)
    table.means(ADA, OverlapIntent.CONTINUE)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE]
    table.means(BO, OverlapIntent.YIELD)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.STOP]


def test_a_verdict_that_never_comes_does_not_leave_it_hanging() -> None:
    """If the text of an interruption never comes, the bot stops after some seconds."""
    table = Table()
    table.speak(ADA, s=0.8)
    table.end_speech()
    table.speak(s=LONGEST_PAUSE_S + 0.5)
    assert table.done == [BargeInAction.DUCK, BargeInAction.PAUSE, BargeInAction.STOP]


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
    assert not {BargeInAction.PAUSE, BargeInAction.STOP} & set(table.done)
    assert table.machine.level is PlaybackLevel.FULL


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
    level = PlaybackLevel.FULL
    after = {
        BargeInAction.DUCK: PlaybackLevel.DUCKED,
        BargeInAction.PAUSE: PlaybackLevel.PAUSED,
        BargeInAction.RESUME: PlaybackLevel.FULL,
        BargeInAction.STOP: PlaybackLevel.FULL,
    }
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
            assert after[act] is not level or act is BargeInAction.STOP
            assert audible or act is BargeInAction.RESUME
            level = after[act]
        assert table.machine.level is level
    table.audible = False
    table.speak(s=0.1)
    assert table.machine.level is PlaybackLevel.FULL
