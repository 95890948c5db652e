"""Makes a scenario from a folder of recordings: each speaker becomes a person, each recording a spoken step.

To save time, the speakers are divided into a few lanes that play at the same time, as in a lively conversation. Within
a lane the recordings play one after another, so nobody speaks over themselves.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.expectations import (
    ExpectAttributed,
    ExpectDaveFailures,
    ExpectEveryUtteranceHeardOnce,
    ExpectMaxWer,
    ExpectNothingRaised,
    ExpectTimelineComplete,
)
from rehearsal.script.file_errors import format_mistake, format_validation_errors
from rehearsal.script.scenario import FIRST_PERSON_ID, CommandStep, PersonSpec, SayStep, Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rehearsal.script.scenario import Step

MANIFEST = "manifest.json"
JOIN_ID = "join"
# Three people speaking at once is lively, and a recogniser on a small machine can still keep up.
LANES = 3
# This pause is longer than the endpointing silence, so that two recordings never become one utterance.
GAP_S = 1.5
# The delay between the starts of two lanes.
_STAGGER_S = 1.1
_DEFAULT_LENGTH_S = 5.0
# The base model stays below this word error rate on the recordings with which it was measured (read speech, 12
# speakers).
MAX_WER = 0.12
# A small recogniser drops a few recordings of strangers. Each dropped recording still counts as word errors.
MAY_MISS = 0.03

_EXAMPLE = '{"file": "one.flac", "speaker": "anna", "text": "what is said in it", "duration": 3.2}'


class ManifestEntry(BaseModel):
    """One entry of a manifest. `duration` is in seconds. Other keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    file: str = Field(min_length=1)
    speaker: str = Field(min_length=1)
    text: str = Field(min_length=1)
    duration: float | None = Field(default=None, gt=0)

    @property
    def length_s(self) -> float:
        """Return the length of the recording in seconds, or an assumed length if the manifest has none."""
        return self.duration if self.duration is not None else _DEFAULT_LENGTH_S


def scenario_from_recordings(
    folder: Path, *, base: Scenario | None = None, lanes: int = LANES, limit: int | None = None
) -> Scenario:
    """Return a scenario that plays the recordings of `folder/manifest.json`.

    The scenario keeps the settings, network, names, history and people of `base`. `limit`: the most recordings to play,
    divided evenly over the speakers. Raises `ScenarioError` with every mistake of the manifest.
    """
    recordings = _evenly_chosen(_manifest(folder), limit)
    known = base.people if base is not None else ()
    names = [name for name in dict.fromkeys(one.speaker for one in recordings) if not _is_one_of(name, known)]
    first_id = max((person.id for person in known), default=FIRST_PERSON_ID - 1) + 1
    people = (*known, *(PersonSpec(key=name, name=name, id=first_id + at) for at, name in enumerate(names)))
    steps: list[Step] = [CommandStep(id=JOIN_ID, who=people[0].key, command="join")]
    for number, lane in enumerate(_lanes(recordings, lanes)):
        steps += _lane_steps(folder, lane, number, people)
    scenario = base or Scenario(title="Recordings", people=people, steps=tuple(steps))
    return scenario.model_copy(
        update={
            "title": f"Recordings of {folder}",
            "people": people,
            "steps": tuple(steps),
            "expect": (
                ExpectEveryUtteranceHeardOnce(kind="every_utterance_heard_once", may_miss=MAY_MISS),
                ExpectAttributed(kind="attributed"),
                ExpectMaxWer(kind="max_wer", value=MAX_WER),
                ExpectDaveFailures(kind="dave_failures"),
                ExpectTimelineComplete(kind="timeline_complete"),
                ExpectNothingRaised(kind="nothing_raised"),
            ),
        }
    )


def _is_one_of(speaker: str, people: Sequence[PersonSpec]) -> bool:
    return any(speaker in (person.key, person.name) for person in people)


def _manifest(folder: Path) -> list[ManifestEntry]:
    path = folder / MANIFEST
    try:
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        what = f"it cannot be read ({exc.strerror or exc}); --speech needs a folder with a {MANIFEST}"
        raise ScenarioError((format_mistake(path, "", what, example="roomtone rehearse --speech recordings"),)) from exc
    except (UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise ScenarioError((format_mistake(path, "", f"it is not JSON ({exc})", example=f"[{_EXAMPLE}]"),)) from exc
    except (ValueError, RecursionError) as exc:
        what = "it is nested too deeply, or a number is too long"
        raise ScenarioError((format_mistake(path, "", what, example=f"[{_EXAMPLE}]"),)) from exc
    if not isinstance(entries, list) or not entries:
        raise ScenarioError((format_mistake(path, "", "it is not a list of recordings", example=f"[{_EXAMPLE}]"),))
    mistakes: list[str] = []
    found = []
    for number, entry in enumerate(entries, start=1):
        place = f"entry {number}"
        try:
            recording = ManifestEntry.model_validate(entry)
        except ValidationError as exc:
            examples = dict.fromkeys((*ManifestEntry.model_fields, ""), _EXAMPLE)
            mistakes += format_validation_errors(
                exc, path, place=place, known=ManifestEntry.model_fields, examples=examples
            )
            continue
        if not (folder / recording.file).is_file():
            mistakes.append(format_mistake(path, f"{place}.file", f'there is no file "{recording.file}" in its folder'))
        found.append(recording)
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return found


def _evenly_chosen(recordings: Sequence[ManifestEntry], limit: int | None) -> list[ManifestEntry]:
    """Return the first recording of each speaker, then the second of each, and so on, up to the limit."""
    rounds: dict[str, int] = {}
    ranked = []
    for position, recording in enumerate(recordings):
        rounds[recording.speaker] = rounds.get(recording.speaker, 0) + 1
        ranked.append((rounds[recording.speaker], position))
    return [recordings[position] for _, position in sorted(ranked)[:limit]]


def _lanes(recordings: Sequence[ManifestEntry], lanes: int) -> list[list[ManifestEntry]]:
    """Assign speakers to lanes of about equal length, the longest speaker first."""
    speakers: dict[str, float] = {}
    for recording in recordings:
        speakers[recording.speaker] = speakers.get(recording.speaker, 0.0) + recording.length_s + GAP_S
    lengths = [0.0] * max(1, min(lanes, len(speakers)))
    lane_of: dict[str, int] = {}
    for speaker, length_s in sorted(speakers.items(), key=lambda item: -item[1]):
        lane_of[speaker] = lengths.index(min(lengths))
        lengths[lane_of[speaker]] += length_s
    # `recordings` already alternates between the speakers, so each lane does too.
    return [[one for one in recordings if lane_of[one.speaker] == lane] for lane in range(len(lengths))]


def _lane_steps(folder: Path, lane: Sequence[ManifestEntry], number: int, people: Sequence[PersonSpec]) -> list[Step]:
    steps: list[Step] = []
    for position, recording in enumerate(lane):
        who = next(person.key for person in people if _is_one_of(recording.speaker, (person,)))
        # The first recording of each lane follows the step in which the bot joins.
        after = f"lane-{number + 1}-{position}" if position else JOIN_ID
        steps.append(
            SayStep(
                id=f"lane-{number + 1}-{position + 1}",
                who=who,
                say=recording.text,
                audio=(folder / recording.file).resolve(),
                after=after,
                gap_s=GAP_S if position else _STAGGER_S * (number + 1),
            )
        )
    return steps
