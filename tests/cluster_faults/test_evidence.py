"""What the runs are judged by: where a recording is found in a sound, and what counts as heard, lost or doubled."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rehearsal.discord.voice.gateway import VoiceSessionChange
from rehearsal.people.clip import Clip
from rehearsal.people.person import ClipPlayback
from tests.cluster_faults.evidence import (
    HeardSpan,
    StoredTurn,
    VoiceChange,
    begun_and_ended,
    changed,
    check_takes,
    connected_at,
    gaps_in_numbers,
    handed_over_at,
    heard_again_s,
    heard_spans,
    heard_without_script,
    hears_after_s,
)
from tests.cluster_faults.takes import RATE_HZ, HeardPart, Sample, Take, Takes, find_parts, parts_in
from tests.cluster_faults.trial import RoomOutcome, room_heard

HELLO = Path(__file__).parents[2] / "rehearsal/scenarios/hello"


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Three recordings."""
    return [Sample.of(Clip.load(path)) for path in sorted(HELLO.glob("*.ogg"))[:3]]


def played(take: Take, *, sent: int | None = None, late_s: float = 0.0) -> Take:
    """Return the take as played at second 100 of the clock."""
    clip = take.sample.clip
    count = len(clip.packets)
    began, ended = 100.0 + clip.voiced_start_s, 100.0 + clip.voiced_end_s
    whole = count if sent is None else sent
    take.played = ClipPlayback(100.0, began, ended, whole, count - whole, 0, late_s)
    return take


def test_a_part_of_a_recording_is_found_where_it_is(samples: list[Sample]) -> None:
    """With silence before it, noise on it and another recording behind it, and in their order."""
    half = len(samples[0].sound) // 2
    silence = np.zeros(RATE_HZ)
    sound = np.concatenate([silence, samples[0].sound[half:], silence, samples[1].sound])
    noisy = sound + np.random.default_rng(1).normal(0, 30, len(sound))
    found = find_parts(noisy, [sample.sound for sample in samples])
    assert [index for index, _, _ in found] == [0, 1]
    _, from_s, to_s = found[0]
    assert from_s == pytest.approx(half / RATE_HZ, abs=0.15)
    assert to_s == pytest.approx(samples[0].voiced[1], abs=0.15)


def test_silence_within_a_recording_is_not_heard(samples: list[Sample]) -> None:
    """Who joins in the middle, or loses a second, has heard the rest."""
    sound = samples[0].sound.copy()
    sound[: RATE_HZ // 2] = 0
    third = len(sound) // 2
    sound[third : third + RATE_HZ // 2] = 0
    (_, begin_s, hole_s), (_, back_s, _) = find_parts(sound, [samples[0].sound])
    assert begin_s == pytest.approx(0.5, abs=0.3)
    assert hole_s == pytest.approx(third / RATE_HZ, abs=0.3)
    assert back_s == pytest.approx(third / RATE_HZ + 0.5, abs=0.3)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_both_sides_of_a_connection_that_was_made_anew_are_heard(samples: list[Sample], share: float) -> None:
    """What was sent meanwhile is missing, and the rest comes sooner than it should: only that is not heard."""
    sample = max(samples, key=lambda each: len(each.sound))
    begin, end = (round(RATE_HZ * place_s) for place_s in sample.voiced)
    cut = begin + round(share * (end - begin))
    sound = np.concatenate([sample.sound[:cut], sample.sound[cut + RATE_HZ // 4 :]])
    parts = find_parts(sound, [each.sound for each in samples])
    assert {samples[index] is sample for index, _, _ in parts} == {True}
    heard_s = sum(to_s - from_s for _, from_s, to_s in parts)
    assert heard_s == pytest.approx(sample.voiced[1] - sample.voiced[0] - 0.25, abs=0.45)
    assert all(later[1] >= earlier[2] - 0.15 for earlier, later in itertools.pairwise(parts)), "nothing twice"


def test_what_nobody_said_is_not_found(samples: list[Sample]) -> None:
    """Of a recording that was not played nothing is found, and of silence neither."""
    assert find_parts(samples[1].sound, [samples[0].sound]) == []
    assert find_parts(np.zeros(RATE_HZ), [samples[0].sound]) == []


def test_a_text_names_the_parts_that_were_heard(samples: list[Sample]) -> None:
    """What the recogniser answers is read again from the store."""
    takes = Takes()
    take = takes.begin(0, 2001, samples[0], question=True)
    text = takes.text_of(take, 0.4, 2.0) + " " + takes.text_of(take, 2.5, 3.0)
    assert list(parts_in(text)) == [HeardPart(0, 0.4, 2.0), HeardPart(0, 2.5, 3.0)]
    assert text.startswith("Roomtone")
    assert text.count("Roomtone") == 1, "the name is at the beginning of the recording"


def turn(seq: int, *parts: HeardPart, guild: int = 7) -> StoredTurn:
    """Return a stored turn that tells of these parts."""
    text = " ".join(f"take {part.take} tenths {10 * part.from_s:.0f} to {10 * part.to_s:.0f}" for part in parts)
    return StoredTurn(guild, "s", seq, text)


def test_what_is_missing_or_there_twice_is_counted(samples: list[Sample]) -> None:
    """Parts that join are whole; a hole is missing; what two turns have is there twice. A late one is not judged."""
    takes = Takes()
    every = [played(takes.begin(0, 2001, samples[0])) for _ in range(3)]
    every.append(played(takes.begin(0, 2001, samples[0]), sent=3))
    every.append(played(takes.begin(0, 2001, samples[0]), late_s=1.0))
    begin, end = samples[0].voiced
    middle = (begin + end) / 2
    turns = [
        turn(0, HeardPart(0, begin, middle), HeardPart(0, middle, end)),
        turn(1, HeardPart(1, begin, middle)),
        turn(2, HeardPart(2, begin, end)),
        turn(3, HeardPart(2, middle, end)),
    ]
    checks = check_takes(every, turns)
    assert [check.take.number for check in checks] == [0, 1, 2]
    assert [check.missing_s for check in checks] == pytest.approx([0, end - middle, 0], abs=0.2)
    assert [check.twice_s for check in checks] == pytest.approx([0, 0, end - middle], abs=0.2)


def test_what_a_bots_own_model_wrote_is_judged_by_its_time(samples: list[Sample]) -> None:
    """Its words have no marks. A turn of another server, or with marks, says nothing of the sentence."""
    takes = Takes()
    (check,) = check_takes([played(takes.begin(0, 2001, samples[0]))], [])
    begun_at, ended_at = check.take.spoken
    own = StoredTurn(7, "s", 0, "the garden gate", (begun_at, ended_at))
    assert heard_without_script(check, 7, [own]).missing_s == pytest.approx(0.0, abs=0.3)
    for other in (replace(own, guild_id=8), replace(own, text="take 3 tenths 1 to 9"), replace(own, text="")):
        assert heard_without_script(check, 7, [other]).missing_s == check.missing_s


def test_turns_that_are_gone_or_other_are_counted() -> None:
    """A turn that was stored stays as it is. Its numbers have no hole, in any session."""
    before = [turn(0, HeardPart(0, 0, 1)), turn(1, HeardPart(1, 0, 1))]
    assert changed(before, [*before, turn(2)]) == 0
    assert changed(before, [turn(0), turn(2)]) == 2
    assert gaps_in_numbers([*before, turn(2)]) == 0
    assert gaps_in_numbers([turn(0), turn(2), turn(2)]) == 2
    assert gaps_in_numbers([turn(1)]) == 1


def test_a_room_hears_again_with_the_first_speech_that_is_stored(samples: list[Sample]) -> None:
    """Times are those at which speech was sent. Who was heard across a fault was heard all the time."""
    takes = Takes()
    take = played(takes.begin(0, 2001, samples[0]))
    spans = heard_spans([take], [turn(0, HeardPart(0, 1.0, 2.0)), turn(1, HeardPart(9, 0, 1))])
    assert spans == [HeardSpan(101.0, 102.0)]
    late = [played(takes.begin(0, 2001, samples[0]), late_s=0.5)]
    assert heard_spans(late, [turn(0, HeardPart(1, 1.0, 2.0))]) == [HeardSpan(101.5, 102.5)], "by how much is not known"
    assert heard_again_s(spans, 100.2) == pytest.approx(0.8)
    assert heard_again_s(spans, 101.5) == 0
    assert heard_again_s(spans, 102.5) is None


def test_a_room_in_which_nobody_spoke_heard_again_when_it_was_connected(samples: list[Sample]) -> None:
    """Speech that is not stored says that it did not hear yet, wherever it is connected."""
    takes = Takes()
    take = played(takes.begin(0, 2001, samples[0]))
    begin, end = take.spoken
    after = [HeardSpan(end + 5.0, end + 6.0)]
    fault_at = begin + 0.5
    unheard_s = end - fault_at
    assert hears_after_s([take], after, fault_at, unheard_s + 2.0) == pytest.approx(unheard_s + 2.0)
    assert hears_after_s([take], after, fault_at, 0.2) == pytest.approx(unheard_s)
    assert hears_after_s([], after, fault_at, None) == 0
    assert hears_after_s([take], [], fault_at, 0.2) is None
    within = [HeardSpan(fault_at + 0.4, end)]
    assert hears_after_s([take], within, fault_at, 0.2) == pytest.approx(0.4), "the beginning of it is not stored"
    assert hears_after_s([], after, fault_at, unheard_s + 30.0) == 0, "what it heard came before the next connection"


def test_a_sentence_that_was_sent_late_and_heard_as_a_whole_is_not_missed(samples: list[Sample]) -> None:
    """Its stored part is dated later by as much as a busy machine may have delayed it, and its marks are tenths."""
    takes = Takes()
    for late_s in (0.0, 0.5):
        take = played(takes.begin(0, 2001, samples[0]), late_s=late_s)
        begin, end = take.spoken
        fault_at = begin - 5.0
        heard = [HeardSpan(begin + late_s + 0.09, end + late_s)]
        assert hears_after_s([take], heard, fault_at, 0.8) == pytest.approx(0.8)
        without_its_beginning = [HeardSpan(begin + late_s + 0.4, end + late_s)]
        assert hears_after_s([take], without_its_beginning, fault_at, 0.8) == pytest.approx(5.4 + late_s)


def test_a_room_that_is_handed_over_is_deaf_from_the_end_of_its_connection() -> None:
    """It hears until then, however long it waits for a pause. What breaks is deaf at once."""
    changes = [(90.0, True), (130.0, False), (130.4, True), (150.0, False)]
    assert handed_over_at(changes, 100.0) == 130.0
    assert handed_over_at([(90.0, True), (99.0, False), (103.0, True)], 100.0) == 100.0
    assert handed_over_at([(90.0, True), (130.4, True), (130.5, False)], 100.0) == 100.0, "nothing is made better"


def test_a_resumed_connection_is_one_more_and_ends_none() -> None:
    """A process that was frozen may resume the connection of the next one: neither begins or ends, and both had it."""
    changes = [
        VoiceChange(100.0, VoiceSessionChange.ENDED),
        VoiceChange(100.1, VoiceSessionChange.BEGUN),
        VoiceChange(115.0, VoiceSessionChange.RESUMED),
        VoiceChange(115.2, VoiceSessionChange.RESUMED),
    ]
    assert connected_at(changes) == [100.1, 115.0, 115.2]
    assert begun_and_ended(changes) == [(100.0, False), (100.1, True)]


@pytest.mark.parametrize(
    ("moved_s", "fault_at", "heard"),
    [
        (None, 99.0, True),  # said after the room heard again
        (None, 101.0, False),  # the fault fell into it
        (None, 120.0, True),  # said long before
        (40.0, 99.0, True),  # handed over later: said before
        (2.0, 99.0, False),  # in mid-sentence
        (0.5, 99.0, True),  # said after the next process was there
        (0.8, 99.0, False),  # begun before it was there
    ],
)
def test_a_sentence_is_lost_only_where_the_room_heard(
    samples: list[Sample], moved_s: float | None, fault_at: float, heard: bool
) -> None:
    """Heard again 0.4 s after the fault, or after the room was handed over."""
    (check,) = check_takes([played(Takes().begin(0, 2001, samples[0]))], [])
    outcome = RoomOutcome(0, 0.4, 0.4, 0.4, 0, 1, 0, moved_s)
    assert room_heard(check, fault_at, outcome) is heard
    assert room_heard(check, fault_at, None)
