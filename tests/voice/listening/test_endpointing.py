"""The endpointing state machine: windows in, utterance limits out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.listening.endpointing import (
    Effect,
    Endpointing,
    SpeechClosed,
    SpeechDismissed,
    SpeechOpened,
    Window,
    windows_of,
)
from voice.settings import ListeningSettings

SETTINGS = ListeningSettings()
VOICED = Window(0.9, 0.1)
SILENT = Window(0.05, 0.0)
END = windows_of(SETTINGS.end_silence_s)
PRE_ROLL = windows_of(SETTINGS.pre_roll_s)
TAIL = windows_of(SETTINGS.tail_s)
ARMING = windows_of(SETTINGS.min_speech_s)


def _feed(endpointing: Endpointing, *windows: Window) -> list[Effect]:
    return [effect for window in windows for effect in endpointing.handle(window)]


def test_an_utterance_has_pre_roll_and_tail() -> None:
    """It begins 300 ms before the first voiced window and ends 200 ms after the last."""
    endpointing = Endpointing(SETTINGS)
    effects = _feed(endpointing, *[SILENT] * 50, *[VOICED] * 40, *[SILENT] * END)
    assert effects == [SpeechOpened(50), SpeechClosed(50 - PRE_ROLL, 90 + TAIL, 50, 90, cut=False)]


def test_speech_is_certain_after_a_quarter_of_a_second() -> None:
    """250 ms are 8 windows; the eighth makes it speech."""
    endpointing = Endpointing(SETTINGS)
    assert _feed(endpointing, *[VOICED] * (ARMING - 1)) == []
    assert not endpointing.is_speaking
    assert _feed(endpointing, VOICED) == [SpeechOpened(0)]
    assert endpointing.is_speaking


def test_a_pause_shorter_than_the_end_silence_stays_inside() -> None:
    """One window short of the limit, the utterance goes on."""
    endpointing = Endpointing(SETTINGS)
    effects = _feed(endpointing, *[VOICED] * 20, *[SILENT] * (END - 1), *[VOICED] * 20, *[SILENT] * END)
    closed = [effect for effect in effects if isinstance(effect, SpeechClosed)]
    assert [(one.first, one.last) for one in closed] == [(0, 40 + END - 1)]


def test_a_click_is_dismissed() -> None:
    """Four windows are no speech, and the sound stays available as the next utterance's pre-roll."""
    endpointing = Endpointing(SETTINGS)
    dip = 7
    effects = _feed(endpointing, *[VOICED] * 4, *[SILENT] * dip, *[VOICED] * 10, *[SILENT] * END)
    assert effects[0] == SpeechDismissed(0, 4)
    assert effects[2] == SpeechClosed(max(0, 4 + dip - PRE_ROLL), 4 + dip + 10 + TAIL, 4 + dip, 4 + dip + 10, cut=False)


def test_clicks_do_not_add_up_to_speech() -> None:
    """A keyboard's strokes, each followed by a quarter of a second of silence, never open an utterance."""
    endpointing = Endpointing(SETTINGS)
    effects = _feed(endpointing, *([*[VOICED] * 2, *[SILENT] * 8] * 20))
    assert {type(effect) for effect in effects} == {SpeechDismissed}


def test_between_the_thresholds_nothing_changes() -> None:
    """0.4 neither begins speech nor pauses it."""
    unsure = Window(0.4, 0.05)
    assert _feed(Endpointing(SETTINGS), *[unsure] * 100) == []
    speaking = Endpointing(SETTINGS)
    _feed(speaking, *[VOICED] * 20, *[unsure] * 100)
    assert speaking.is_speaking


def test_the_next_utterance_takes_no_sound_of_the_last() -> None:
    """Pre-roll stops where the last utterance's tail ended."""
    settings = ListeningSettings(pre_roll_s=2.0)
    endpointing = Endpointing(settings)
    effects = _feed(endpointing, *[VOICED] * 20, *[SILENT] * END, *[VOICED] * 20, *[SILENT] * END)
    first, second = [effect for effect in effects if isinstance(effect, SpeechClosed)]
    assert second.start == first.end


def test_unbroken_speech_is_cut_at_its_quietest_point() -> None:
    """At 30 s the cut falls into the last ten seconds' breath, and what follows is the next utterance."""
    endpointing = Endpointing(SETTINGS)
    loud = [Window(0.9, 0.2)] * 2000
    loud[800] = loud[801] = loud[802] = Window(0.9, 0.01)
    loud[300] = loud[301] = loud[302] = Window(0.9, 0.001)
    effects = _feed(endpointing, *loud[:1000])
    assert effects == [SpeechOpened(0), SpeechClosed(0, 801, 0, 801, cut=True), SpeechOpened(801)]
    assert endpointing.is_speaking
    rest = _feed(endpointing, *[SILENT] * END)
    assert rest == [SpeechClosed(801, 1000 + TAIL, 801, 1000, cut=False)]


def test_an_utterance_that_ends_at_the_limit_is_not_called_cut() -> None:
    """Silence reaching the 30 s is where the cut goes, and nothing is left to follow."""
    endpointing = Endpointing(SETTINGS)
    longest = int(SETTINGS.max_utterance_s * 16_000 / 512)
    effects = _feed(endpointing, *[VOICED] * (longest - 10), *[SILENT] * 40)
    closed = [effect for effect in effects if isinstance(effect, SpeechClosed)]
    assert len(closed) == 1
    assert not closed[0].cut
    assert closed[0].last == longest - 10
    assert endpointing.is_idle


def test_leaving_ends_the_utterance_at_once() -> None:
    """A person who leaves in mid-word is heard up to there."""
    endpointing = Endpointing(SETTINGS)
    _feed(endpointing, *[VOICED] * 20)
    assert endpointing.finish() == [SpeechClosed(0, 20, 0, 20, cut=False)]
    assert endpointing.finish() == []


windows = st.lists(
    st.tuples(st.sampled_from([VOICED, SILENT, Window(0.4, 0.02), Window(0.6, 0.3)]), st.integers(1, 60)), max_size=60
).map(lambda runs: [window for window, count in runs for _ in range(count)])


@given(windows)
def test_utterances_are_ordered_disjoint_and_bounded(line: list[Window]) -> None:
    """Whatever comes, utterances never overlap, never exceed 30 s, and hold the speech they say they hold."""
    settings = ListeningSettings(max_utterance_s=5)
    endpointing = Endpointing(settings)
    free_from = 0
    for count, window in enumerate(line, start=1):
        for effect in endpointing.handle(window):
            if isinstance(effect, SpeechClosed):
                assert free_from <= effect.start <= effect.first < effect.last <= effect.end <= count
                assert (effect.end - effect.start) * 0.032 <= settings.max_utterance_s
                free_from = effect.end
        assert endpointing.oldest_needed >= free_from
        assert (count - endpointing.oldest_needed) * 0.032 <= settings.max_utterance_s


@given(windows)
def test_speech_long_enough_is_never_lost(line: list[Window]) -> None:
    """Every window over the upper threshold lies in an utterance, or was dismissed as too short."""
    endpointing = Endpointing(SETTINGS)
    effects = _feed(endpointing, *line, *[SILENT] * END)
    covered: set[int] = set()
    for effect in effects:
        match effect:
            case SpeechClosed(start=start, end=end):
                covered.update(range(start, end))
            case SpeechDismissed(first=first, last=last):
                covered.update(range(first, last))
            case SpeechOpened():
                pass
    loud = {index for index, window in enumerate(line) if window.probability >= SETTINGS.speech_on}
    assert loud <= covered


@given(windows)
def test_opening_is_always_followed_by_closing(line: list[Window]) -> None:
    """SpeechOpened and SpeechClosed alternate, so a listener can count on the end."""
    endpointing = Endpointing(SETTINGS)
    effects = _feed(endpointing, *line, *[SILENT] * END)
    kinds = [type(effect) for effect in effects if not isinstance(effect, SpeechDismissed)]
    assert kinds == [SpeechOpened, SpeechClosed] * (len(kinds) // 2)
