"""Make a scenario out of a folder of real recordings: every speaker a person, every recording something said.

A manifest is minutes of sound, so speakers are dealt to a few lanes that talk at the same time, as people in a
lively room do; within a lane they take turns, and nobody ever talks over themselves.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.expectations import (
    Attributed,
    DaveFailures,
    EveryUtteranceHeardOnce,
    MaxWer,
    NothingRaised,
    TimelineComplete,
)
from rehearsal.script.mistakes import sentence, sentences_of
from rehearsal.script.scenario import FIRST_PERSON_ID, Command, PersonSpec, Say, Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rehearsal.script.scenario import Step

MANIFEST = "manifest.json"
JOIN_ID = "join"
# Three at once is a lively room, and keeps a small machine's recogniser below its capacity.
LANES = 3
# Longer than any end-of-speech silence of ours, so that two recordings never become one utterance.
GAP_S = 1.5
# The lanes do not start in step.
_STAGGER_S = 1.1
_GUESSED_S = 5.0
# What the base model keeps to on the recordings this was made with (read speech, 12 speakers).
MAX_WER = 0.12
# Of strangers' recordings a small recogniser is rightly unsure of a few; each still counts as word errors.
MAY_MISS = 0.03

_EXAMPLE = '{"file": "one.flac", "speaker": "anna", "text": "what is said in it", "duration": 3.2}'


class Recording(BaseModel):
    """One entry of a manifest. `duration` in seconds; other keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    file: str = Field(min_length=1)
    speaker: str = Field(min_length=1)
    text: str = Field(min_length=1)
    duration: float | None = Field(default=None, gt=0)

    @property
    def length_s(self) -> float:
        """Return how long it takes, guessed where the manifest does not say."""
        return self.duration if self.duration is not None else _GUESSED_S


def speech_scenario(
    folder: Path, *, base: Scenario | None = None, lanes: int = LANES, limit: int | None = None
) -> Scenario:
    """Return a scenario that plays the recordings of `folder/manifest.json`.

    `base`: its settings, network, names, history and the people of that history are kept. `limit`: at most so
    many recordings, dealt evenly over the speakers. Raises `ScenarioError` with every mistake of the manifest.
    """
    recordings = _first(_manifest(folder), limit)
    known = base.people if base is not None else ()
    names = [name for name in dict.fromkeys(one.speaker for one in recordings) if not _stands(name, known)]
    first_id = max((person.id for person in known), default=FIRST_PERSON_ID - 1) + 1
    people = (*known, *(PersonSpec(key=name, name=name, id=first_id + at) for at, name in enumerate(names)))
    steps: list[Step] = [Command(id=JOIN_ID, who=people[0].key, command="join")]
    for number, lane in enumerate(_lanes(recordings, lanes)):
        steps += _lane_steps(folder, lane, number, people)
    setting = base or Scenario(title="Recordings", people=people, steps=tuple(steps))
    return setting.model_copy(
        update={
            "title": f"Recordings of {folder}",
            "people": people,
            "steps": tuple(steps),
            "expect": (
                EveryUtteranceHeardOnce(kind="every_utterance_heard_once", may_miss=MAY_MISS),
                Attributed(kind="attributed"),
                MaxWer(kind="max_wer", value=MAX_WER),
                DaveFailures(kind="dave_failures"),
                TimelineComplete(kind="timeline_complete"),
                NothingRaised(kind="nothing_raised"),
            ),
        }
    )


def _stands(speaker: str, people: Sequence[PersonSpec]) -> bool:
    return any(speaker in (person.key, person.name) for person in people)


def _manifest(folder: Path) -> list[Recording]:
    path = folder / MANIFEST
    try:
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        what = f"it cannot be read ({exc.strerror or exc}); --speech wants a folder with a {MANIFEST}"
        raise ScenarioError((sentence(path, "", what, example="roomtone rehearse --speech recordings"),)) from exc
    except (UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise ScenarioError((sentence(path, "", f"it is not JSON ({exc})", example=f"[{_EXAMPLE}]"),)) from exc
    if not isinstance(entries, list) or not entries:
        raise ScenarioError((sentence(path, "", "it is not a list of recordings", example=f"[{_EXAMPLE}]"),))
    mistakes: list[str] = []
    found = []
    for number, entry in enumerate(entries, start=1):
        place = f"entry {number}"
        try:
            recording = Recording.model_validate(entry)
        except ValidationError as exc:
            examples = dict.fromkeys((*Recording.model_fields, ""), _EXAMPLE)
            mistakes += sentences_of(exc, path, place=place, known=Recording.model_fields, examples=examples)
            continue
        if not (folder / recording.file).is_file():
            mistakes.append(sentence(path, f"{place}.file", f'there is no file "{recording.file}" beside it'))
        found.append(recording)
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return found


def _first(recordings: Sequence[Recording], limit: int | None) -> list[Recording]:
    """Return the first recording of each speaker, then each one's second, and so on, up to the limit."""
    rounds: dict[str, int] = {}
    ranked = []
    for position, recording in enumerate(recordings):
        rounds[recording.speaker] = rounds.get(recording.speaker, 0) + 1
        ranked.append((rounds[recording.speaker], position))
    return [recordings[position] for _, position in sorted(ranked)[:limit]]


def _lanes(recordings: Sequence[Recording], lanes: int) -> list[list[Recording]]:
    """Deal whole speakers to lanes of about equal length, the longest speaker first."""
    speakers: dict[str, float] = {}
    for recording in recordings:
        speakers[recording.speaker] = speakers.get(recording.speaker, 0.0) + recording.length_s + GAP_S
    lengths = [0.0] * max(1, min(lanes, len(speakers)))
    lane_of: dict[str, int] = {}
    for speaker, length_s in sorted(speakers.items(), key=lambda item: -item[1]):
        lane_of[speaker] = lengths.index(min(lengths))
        lengths[lane_of[speaker]] += length_s
    # `recordings` already goes round the speakers, so each lane does too.
    return [[one for one in recordings if lane_of[one.speaker] == lane] for lane in range(len(lengths))]


def _lane_steps(folder: Path, lane: Sequence[Recording], number: int, people: Sequence[PersonSpec]) -> list[Step]:
    steps: list[Step] = []
    for position, recording in enumerate(lane):
        who = next(person.key for person in people if _stands(recording.speaker, (person,)))
        # The first of each lane follows the step that brings the bot in.
        after = f"lane-{number + 1}-{position}" if position else JOIN_ID
        steps.append(
            Say(
                id=f"lane-{number + 1}-{position + 1}",
                who=who,
                say=recording.text,
                audio=(folder / recording.file).resolve(),
                after=after,
                gap_s=GAP_S if position else _STAGGER_S * (number + 1),
            )
        )
    return steps
