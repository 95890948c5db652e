"""Whether the models for hearing, speaking and memory search are there and whole, and where the recogniser runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.cli.failures import INSTALL_PARTS
from bot.cli.output import count
from bot.models.catalogue import CATALOGUE, EMBED_SENTENCES, TURN_SMART, TURN_TEXT, VAD_SILERO, VOICE_JOE, WHISPER_BASE
from bot.models.directory import ModelDirectory, whisper_folder
from compaction.model import Mode
from voice.asr.text_end import LANGUAGE
from voice.endpoint_settings import without_secrets

if TYPE_CHECKING:
    from pathlib import Path

    from bot.models.entry import ModelEntry
    from bot.settings import CompactionSection, ModelsSettings, RecallSettings
    from voice.asr.settings import AsrSettings
    from voice.speaking.settings import SpeakingSettings

# Without names it brings all that a bot needs by default, so that several findings have the same remedy.
PULL_ALL = "Run `roomtone models pull`."
_NAME_A_MODEL = (
    "Set asr.model to a Whisper model that `roomtone models list` shows and that you have pulled, to the folder of a "
    "CTranslate2 Whisper model, or leave it out."
)
_WORDS_ALONE = "only the same words are found, not what was said in others"


def check_recogniser(models: ModelsSettings, settings: AsrSettings) -> Finding:
    """Check that the Whisper model is there, and compare the hashes of a known one.

    With an endpoint, the model is only the fallback, so a missing one is a warning.
    """
    finding = _check_local_recogniser(whisper_folder(models, settings))
    if not settings.by_endpoint:
        return finding
    where = f"{settings.endpoint_model} at {without_secrets(settings.base_url) or 'OpenAI'}"
    if finding.status is Status.OK:
        return replace(finding, detail=f"{where}; behind it {finding.detail}")
    return replace(finding, status=Status.WARNING, detail=f"{where}, with nothing behind it: {finding.detail}")


def _check_local_recogniser(folder: Path) -> Finding:
    entry = next((each for each in CATALOGUE if each.name == folder.name), None)
    if entry is not None:
        pull = f"Run `roomtone models pull{f' {entry.name}' if entry.name != WHISPER_BASE.name else ''}`."
        return check_model("recogniser", entry, folder, pull)
    if not (folder / WHISPER_BASE.main_file.name).is_file():
        return Finding("recogniser", Status.MISSING, f"There is no Whisper model in {folder}.", _NAME_A_MODEL)
    return Finding("recogniser", Status.OK, f"a model of your own in {folder}")


def check_voice(settings: SpeakingSettings, models_dir: Path, *, installed: bool) -> Finding:
    """Check the embedded voice: its engine and its model. Without one the bot answers in writing.

    An endpoint is not asked; behind one, the embedded voice is only the fallback.
    """
    if installed:
        finding = check_model("voice", VOICE_JOE, models_dir / VOICE_JOE.name, PULL_ALL)
    else:
        absent = "Piper, the engine of the embedded voice, is absent"
        finding = Finding("voice", Status.MISSING, absent, INSTALL_PARTS)
    is_whole, detail = finding.status is Status.OK, finding.detail.rstrip(".")
    if settings.by_endpoint:
        first = f"{settings.model} at {without_secrets(settings.base_url) or 'OpenAI'}"
        detail = f"{first}; behind it {detail}" if is_whole else f"{first}, with nothing behind it: {detail}"
    elif not is_whole:
        detail = f"{detail}: the bot answers in writing"
    return replace(finding, status=Status.OK if is_whole else Status.WARNING, detail=detail)


def check_turns(models: ModelsSettings, asr: AsrSettings) -> Finding:
    """Check the small models for listening. Without them the bot works, but detects the end of turns less well."""
    # An endpoint recognises without it, and the local model stands in there without it.
    reads = not asr.by_endpoint and asr.fixed_language in {None, LANGUAGE}
    wanted = (TURN_SMART, *((TURN_TEXT,) if reads else ()), VAD_SILERO)
    found = [check_model("listening", entry, models.directory / entry.name, "") for entry in wanted]
    wrong = [finding.detail.rstrip(".") for finding in found if finding.status is not Status.OK]
    if not wrong:
        return Finding("listening", Status.OK, "; ".join(entry.title for entry in wanted))
    detail = f"{'; '.join(wrong)}: turns end later, and more sentences are cut"
    return Finding("listening", Status.WARNING, detail, PULL_ALL)


def check_embedder(models_dir: Path, recall: RecallSettings) -> Finding:
    """Check the embedding model of the memory search; an endpoint is not asked. Without one the bot runs."""
    if not recall.enabled:
        return Finding("memory search", Status.OK, f"{_WORDS_ALONE} (switched off)")
    if recall.base_url:
        where = without_secrets(recall.base_url)
        return Finding("memory search", Status.OK, f"{recall.model} at {where}, which was not asked")
    finding = check_model("memory search", EMBED_SENTENCES, models_dir / EMBED_SENTENCES.name, PULL_ALL)
    if finding.status is Status.OK or ModelDirectory(models_dir).holds(EMBED_SENTENCES):
        return finding
    return replace(finding, status=Status.WARNING, detail=f"{finding.detail.rstrip('.')}: {_WORDS_ALONE}")


def check_memory_mode(compaction: CompactionSection, recall: RecallSettings) -> Finding:
    """Return which mode of the memory is in force: `rolling` needs memory search."""
    if compaction.mode is Mode.ROLLING and not recall.enabled:
        remedy = 'Set `recall.enabled = true`, or `compaction.mode = "summary"`.'
        return Finding("memory mode", Status.WARNING, "summary: rolling needs memory search, which is off", remedy)
    return Finding("memory mode", Status.OK, f"{compaction.mode.value}, where no server has chosen another")


def check_model(name: str, entry: ModelEntry, folder: Path, pull: str) -> Finding:
    """Check that a model of the catalogue is in `folder` and whole. `pull`: the remedy if it is not."""
    wrong = ModelDirectory(folder.parent).verify(entry)
    if wrong is None:
        return Finding(name, Status.OK, f"{entry.title}, in {folder}")
    return Finding(name, Status.MISSING, wrong.partition(" Run `")[0], pull)


def check_device(cuda_devices: int) -> Finding:
    """Return on which device the recogniser will run."""
    if cuda_devices:
        return Finding("cuda", Status.OK, f"{count(cuda_devices, 'device')}; the recogniser runs there")
    return Finding("cuda", Status.OK, "none; the recogniser runs on the CPU, which is enough")
