"""Makes a scenario from a folder of recordings: each speaker becomes a person, each recording a spoken step.

To save time, the speakers are divided into a few lanes that play at the same time, as in a lively conversation. Within
a lane the recordings play one after another, so nobody speaks over themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.expectations import (
    ExpectAttributed,
    ExpectDaveFailures,
    ExpectEveryUtteranceHeardOnce,
    ExpectMaxWer,
    ExpectNothingRaised,
    ExpectTimelineComplete,
)
from rehearsal.script.scenario import FIRST_PERSON_ID, CommandStep, PersonSpec, SayStep, Scenario
from rehearsal.script.scenario_file import mistake, read_text, validation_mistakes

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


_ENTRIES = TypeAdapter(Annotated[list[ManifestEntry], Field(min_length=1)])


def scenario_from_recordings(folder: Path, *, lanes: int = LANES, limit: int | None = None) -> Scenario:
    """Return a scenario that plays the recordings of `folder/manifest.json`.

    `limit`: the most recordings to play, divided evenly over the speakers. Raises `ScenarioError` with the mistakes of
    the manifest.
    """
    recordings = _evenly_chosen(_manifest(folder), limit)
    names = dict.fromkeys(one.speaker for one in recordings)
    people = tuple(PersonSpec(key=name, name=name, id=FIRST_PERSON_ID + at) for at, name in enumerate(names))
    steps: list[Step] = [CommandStep(id=JOIN_ID, who=people[0].key, command="join")]
    for number, lane in enumerate(_lanes(recordings, lanes)):
        steps += _lane_steps(folder, lane, number)
    return Scenario(
        title=f"Recordings of {folder}",
        people=people,
        steps=tuple(steps),
        expect=(
            ExpectEveryUtteranceHeardOnce(kind="every_utterance_heard_once", may_miss=MAY_MISS),
            ExpectAttributed(kind="attributed"),
            ExpectMaxWer(kind="max_wer", value=MAX_WER),
            ExpectDaveFailures(kind="dave_failures"),
            ExpectTimelineComplete(kind="timeline_complete"),
            ExpectNothingRaised(kind="nothing_raised"),
        ),
    )


def _manifest(folder: Path) -> list[ManifestEntry]:
    path = folder / MANIFEST
    try:
        entries = _ENTRIES.validate_json(read_text(path))
    except ValidationError as exc:
        raise ScenarioError(validation_mistakes(exc, path)) from exc
    missing = [each.file for each in entries if not (folder / each.file).is_file()]
    if missing:
        raise ScenarioError(tuple(mistake(path, "", f'there is no file "{file}" in its folder') for file in missing))
    return entries


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


def _lane_steps(folder: Path, lane: Sequence[ManifestEntry], number: int) -> list[Step]:
    steps: list[Step] = []
    for position, recording in enumerate(lane):
        # The first recording of each lane follows the step in which the bot joins.
        after = f"lane-{number + 1}-{position}" if position else JOIN_ID
        steps.append(
            SayStep(
                id=f"lane-{number + 1}-{position + 1}",
                who=recording.speaker,
                say=recording.text,
                audio=(folder / recording.file).resolve(),
                after=after,
                gap_s=GAP_S if position else _STAGGER_S * (number + 1),
            )
        )
    return steps
