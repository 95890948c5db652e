"""Whether the models for hearing and speaking are there and whole, and on which device the recogniser runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.cli.doctor.file_access import GIVE_RIGHTS, why_unreadable
from bot.cli.doctor.finding import Finding, Status
from bot.cli.failures import INSTALL_PARTS
from bot.cli.output import count
from bot.models.catalogue import CATALOGUE, TURN_SMART, TURN_TEXT, VAD_SILERO, VOICE_JOE, WHISPER_BASE
from bot.models.directory import ModelDirectory
from bot.models.text_end_reader import text_end_folder
from voice.endpoint_settings import without_secrets
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bot.models.entry import ModelEntry
    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings
    from voice.listening.settings import ListeningSettings
    from voice.speaking.settings import SpeakingSettings

# Without names it brings all that a bot needs by default, so that several findings have the same remedy.
PULL_ALL = "Run `roomtone models pull`."
_NAME_A_MODEL = (
    "Set asr.model to a Whisper model that `roomtone models list` shows and that you have pulled, to the folder of a "
    "CTranslate2 Whisper model, or leave it out."
)


def check_recogniser(settings: AsrSettings) -> Finding:
    """Check that the Whisper model is installed and readable, and compare the hashes of a known model.

    With an endpoint, the model is only the fallback, so a missing one is a warning.
    """
    finding = _check_local_recogniser(settings)
    if settings.engine == "local":
        return finding
    where = without_secrets(settings.base_url) or "OpenAI"
    if finding.status is Status.OK:
        return replace(finding, detail=f"{settings.endpoint_model} at {where}; behind it {finding.detail}")
    detail = f"{settings.endpoint_model} at {where}, with nothing behind it: {finding.detail}"
    return replace(finding, status=Status.WARNING, detail=detail)


def _check_local_recogniser(settings: AsrSettings) -> Finding:
    folder = settings.model_dir
    entry = next((each for each in CATALOGUE if each.name == folder.name), None)
    if entry is not None:
        pull = f"Run `roomtone models pull{f' {entry.name}' if entry.name != WHISPER_BASE.name else ''}`."
        return check_model("recogniser", entry, folder, pull)
    wanted = folder / WHISPER_BASE.main_file.name
    if (trouble := why_unreadable(folder)) is not None:
        return Finding("recogniser", Status.MISSING, trouble, GIVE_RIGHTS)
    if not wanted.is_file():
        return Finding("recogniser", Status.MISSING, f"There is no Whisper model in {folder}.", _NAME_A_MODEL)
    return Finding("recogniser", Status.OK, f"a model of your own in {folder}")


def check_voice(settings: SpeakingSettings, models_dir: Path, *, installed: bool) -> Finding:
    """Check the embedded voice: its engine and its model. Without one the bot answers in writing.

    An endpoint is not asked. Behind one, the embedded voice is only the fallback, if that is wanted.
    """
    finding = _check_embedded_voice(models_dir, installed=installed)
    detail = finding.detail.rstrip(".")
    if not settings.by_endpoint:
        return (
            finding if finding.status is Status.OK else replace(finding, detail=f"{detail}: the bot answers in writing")
        )
    first = f"{settings.model} at {without_secrets(settings.base_url) or 'OpenAI'}"
    if settings.fallback == "none":
        return Finding("voice", Status.OK, f"{first}; what it fails to speak is written")
    link = "; behind it" if finding.status is Status.OK else ", with nothing behind it:"
    return replace(finding, detail=f"{first}{link} {detail}")


def _check_embedded_voice(models_dir: Path, *, installed: bool) -> Finding:
    if not installed:
        return Finding("voice", Status.WARNING, "Piper, the engine of the embedded voice, is absent", INSTALL_PARTS)
    finding = check_model("voice", VOICE_JOE, models_dir / VOICE_JOE.name, PULL_ALL)
    return finding if finding.status is Status.OK else replace(finding, status=Status.WARNING)


def check_turns(models: ModelsSettings, asr: AsrSettings, listening: ListeningSettings) -> Finding:
    """Check the small models for listening. Without them the bot works, but detects the end of turns less well."""
    heard = () if listening.turn_model == "off" else (TURN_SMART,)
    # An endpoint recognises without it, and the local model stands in there without it.
    reads = asr.engine == "local" and text_end_folder(models, asr, listening) is not None
    read = (TURN_TEXT,) if reads else ()
    wanted = (*heard, *read, VAD_SILERO)
    found = [check_model("listening", entry, models.directory / entry.name, "") for entry in wanted]
    wrong = [finding.detail.rstrip(".") for finding in found if finding.status is not Status.OK]
    if not wrong:
        return Finding("listening", Status.OK, "; ".join(entry.title for entry in wanted))
    detail = f"{'; '.join(wrong)}: turns end later, and more sentences are cut"
    return Finding("listening", Status.WARNING, detail, PULL_ALL)


def check_model(name: str, entry: ModelEntry, folder: Path, pull: str) -> Finding:
    """Check that a model of the catalogue is in `folder`, readable and whole. `pull`: the remedy if it is not."""
    model_directory = ModelDirectory(folder.parent)
    if (trouble := why_unreadable(folder)) is not None:
        return Finding(name, Status.MISSING, trouble, GIVE_RIGHTS)
    wrong = model_directory.verify(entry)
    if wrong is None:
        return Finding(name, Status.OK, f"{entry.title}, in {folder}")
    return Finding(name, Status.MISSING, wrong.partition(" Run `")[0], pull)


def check_device(settings: AsrSettings, *, cuda_devices: int, place: Callable[[], object]) -> Finding:
    """Check on which device the recogniser will run. `place` raises `RecogniserError` if that device cannot be used."""
    try:
        place()
    except RecogniserError as error:
        remedy = "Set asr.device to cpu or auto, or install the NVIDIA driver and the CUDA libraries."
        return Finding("cuda", Status.MISSING, str(error), remedy)
    if cuda_devices:
        on = "not used, for asr.device is cpu" if settings.device == "cpu" else "the recogniser runs there"
        return Finding("cuda", Status.OK, f"{count(cuda_devices, 'device')}; {on}")
    return Finding("cuda", Status.OK, "none; the recogniser runs on the CPU, which is enough")


def check_engine(error: ImportError) -> Finding:
    """Report a recogniser whose own libraries cannot be loaded."""
    return Finding(
        "recogniser",
        Status.MISSING,
        f"its libraries cannot be loaded: {error}",
        "Install them anew: `make clean setup`.",
    )
