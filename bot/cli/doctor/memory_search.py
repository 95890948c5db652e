"""Which memory mode is in force, and whether memory search finds what was said in other words: its embedding model, or
the endpoint that has one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.cli.doctor.speech_models import PULL_ALL, check_model
from bot.models.catalogue import EMBED_MINILM
from bot.models.directory import ModelDirectory
from compaction.model import Mode
from voice.endpoint_settings import without_secrets

if TYPE_CHECKING:
    from pathlib import Path

    from bot.settings import RecallSettings

_NAME = "memory search"
_MODE = "memory mode"
_WORDS_ALONE = "only the same words are found, not what was said in others"


def check_memory_mode(mode: Mode, recall: RecallSettings) -> Finding:
    """Return which memory mode is in force for servers that have not chosen one."""
    if mode is not Mode.ROLLING or recall.enabled:
        return Finding(_MODE, Status.OK, f"{mode.value} (compaction.mode); a server may choose another one")
    return Finding(
        _MODE,
        Status.WARNING,
        "summary is in force instead of rolling: without memory search nothing would find what is left out",
        "Set recall.enabled = true, or compaction.mode = summary.",
    )


def check_embedder(models_dir: Path, recall: RecallSettings) -> Finding:
    """Check the embedding model that the settings choose (`bot.embedding.factory`); an endpoint is not asked.

    Without a model the bot runs, unless the settings ask for it or its files are damaged.
    """
    if not recall.enabled:
        return Finding(_NAME, Status.OK, "off (recall.enabled)")
    if recall.embedder == "off":
        return Finding(_NAME, Status.OK, f"{_WORDS_ALONE} (recall.embedder is off)")
    if recall.embedder == "endpoint" or (recall.embedder == "auto" and recall.base_url):
        return Finding(
            _NAME, Status.OK, f"{recall.model} at {without_secrets(recall.base_url) or 'OpenAI'}, which was not asked"
        )
    finding = check_model(_NAME, EMBED_MINILM, models_dir / EMBED_MINILM.name, PULL_ALL)
    if finding.status is Status.OK or recall.embedder == "minilm" or _is_there(models_dir):
        return finding
    return replace(finding, status=Status.WARNING, detail=f"{finding.detail.rstrip('.')}: {_WORDS_ALONE}")


def _is_there(models_dir: Path) -> bool:
    try:
        return ModelDirectory(models_dir).holds(EMBED_MINILM)
    except OSError:
        # It may not even be looked at, and the bot cannot start with it.
        return True
