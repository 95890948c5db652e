"""The recogniser understands the lines of the bundled scenarios, so that a scenario fails for the bot's faults alone.

Whisper's text of a sentence may differ between processors in a letter or two. `make kernels` runs this for each kind of
arithmetic that a processor may have; `COMPUTE_TYPE` is then CTranslate2's number format. `make test` leaves it out,
because it plays the scenarios themselves.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.asr.discord_path import DiscordPath, lossy
from benchmarks.asr.ours import RoomTranscriber
from benchmarks.asr.questions import is_broken
from benchmarks.recordings import load_recordings
from bot.brain.settings import BrainSettings
from bot.brain.wakeword import use_of_name
from bot.settings import ModelsSettings
from rehearsal.people.clip import Clip
from rehearsal.script.expectations import ExpectAnswer, ExpectRecorded
from rehearsal.script.scenario import Scenario
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from rehearsal.words import contains_words, sounds_like, sum_word_errors, word_errors
from voice.asr.glossary import choose_glossary
from voice.asr.placement import DevicePlacement
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine

SCENARIOS = sorted(name for name, path in bundled_scenarios().items() if not load_scenario(path).written)


@pytest.fixture(scope="module")
def ear(whisper_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, tuple[str, ...]], str]:
    """Return what makes the text of a recording as a room does, given the words to expect."""
    place = DevicePlacement("cpu", os.environ.get("COMPUTE_TYPE", "int8"))
    engine = WhisperEngine(whisper_model_dir, AsrSettings(), place, threads=1)
    path = DiscordPath(ModelsSettings(directory=tmp_path_factory.mktemp("no models")))

    @cache
    def hear(audio: Path, glossary: tuple[str, ...]) -> str:
        room = RoomTranscriber(engine, "en", glossary)
        spoken = path.hear(lossy(Clip.load(audio).packets, loss=0, seed=1)).utterances
        texts = [asyncio.run(room.transcribe(one.pcm, speech_s=one.ended_at - one.started_at)) for one in spoken]
        return " ".join(texts)

    return hear


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_lines_of_a_scenario_are_understood(name: str, ear: Callable[[Path, tuple[str, ...]], str]) -> None:
    """Every line keeps its sense and the bot's name, and what the scenario expects to be recorded or asked is heard."""
    scenario = load_scenario(bundled_scenarios()[name])
    names = tuple(dict.fromkeys((scenario.bot.name, *BrainSettings().names)))
    glossary = choose_glossary(
        wake_names=names,
        display_names=[person.name for person in scenario.people],
        words=(scenario.guild, scenario.channel),
    )
    heard = {line.say: ear(line.audio, glossary) for line in scenario.says if line.audio is not None}
    broken = {
        said: text
        for said, text in heard.items()
        if _loses_sense(said, text) or (use_of_name(said, names).mentioned and not use_of_name(text, names).mentioned)
    }
    assert not broken
    for words in _needed(scenario):
        for said, text in heard.items():
            assert all(sounds_like(text, word) for word in words) or not all(
                contains_words(said, word) for word in words
            )


@pytest.mark.slow
def test_strangers_are_understood(speech_dir: Path, ear: Callable[[Path, tuple[str, ...]], str]) -> None:
    """Read speech of a dozen people, a recording of each, is heard with less than 12 % wrong words."""
    recordings = list({one.speaker: one for one in load_recordings(speech_dir).recordings}.values())
    assert len(recordings) >= 12
    assert sum_word_errors([word_errors(one.text, ear(one.path, ())) for one in recordings]).rate < 0.12


def _loses_sense(said: str, text: str) -> bool:
    """Return whether nobody could understand the text; one word, as 'Mm-hmm.', may be written in many ways."""
    errors = word_errors(said, text)
    return errors.words > 1 and is_broken(errors)


def _needed(scenario: Scenario) -> list[tuple[str, ...]]:
    """Return the words that a line must keep if it has them: the scripted model looks for them in a question, or the
    scenario expects them in the timeline or in an answer.
    """
    scripted = scenario.servers.model.answers if scenario.servers.model is not None else ()
    recorded = [(each.contains,) for each in scenario.expect if isinstance(each, ExpectRecorded) and each.value]
    answered = [(word,) for each in scenario.expect if isinstance(each, ExpectAnswer) for word in each.all_of]
    return [*(answer.asked for answer in scripted if answer.asked), *recorded, *answered]
