"""Finds settings that have no effect, because another setting switches off what they are for.

Each is said in a sentence when the settings are read, so that nobody believes that speech goes to an endpoint which is
never asked. Conditions do not look at keys: these are often in the environment of the service alone, and a command in
the operator's shell would say something wrong about the bot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.settings import SummariserKind
from config.schema import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from config.problems import SettingOrigin
    from config.schema import Key, Settings


@dataclass(frozen=True, slots=True)
class _Rule:
    """Settings without effect. `applies`: whether they have none. `why`: a clause. `remedy`: what to set instead."""

    names: tuple[str, ...]
    applies: Callable[[Settings], bool]
    why: str
    remedy: str


_RULES = (
    _Rule(
        ("asr.base_url", "asr.api_key"),
        lambda settings: settings.asr.engine == "local",
        "speech is recognised on this machine (asr.engine = local)",
        'Set asr.engine = "endpoint"',
    ),
    _Rule(
        (
            "speaking.base_url",
            "speaking.api_key",
            "speaking.model",
            "speaking.voice_name",
        ),
        lambda settings: settings.speaking.engine == "piper",
        "the embedded voice speaks (speaking.engine = piper)",
        'Set speaking.engine = "endpoint"',
    ),
    _Rule(
        ("recall.base_url", "recall.api_key", "recall.model"),
        lambda settings: (
            settings.recall.embedder in ("minilm", "off")
            or (settings.recall.embedder == "auto" and not settings.recall.base_url)
        ),
        "no endpoint embeds memory (recall.embedder)",
        'Set recall.embedder = "endpoint"',
    ),
    _Rule(
        ("screen.base_url", "screen.api_key", "screen.max_looks_per_hour"),
        lambda settings: not settings.screen.model,
        "no vision model looks at screens (screen.model is empty)",
        "Set screen.model",
    ),
    _Rule(
        ("realtime.enabled",),
        lambda settings: settings.speaking.moderation != "off",
        "a model checks every sentence before it is spoken (speaking.moderation), and speech-to-speech has no "
        "sentences to check",
        'Set speaking.moderation = "off"',
    ),
    _Rule(
        ("compaction.timeout_s",),
        lambda settings: settings.compaction.summariser is SummariserKind.EXTRACTIVE,
        "no model writes summaries (compaction.summariser = extractive)",
        'Set compaction.summariser = "auto"',
    ),
)


def ineffective(settings: Settings, origins: Mapping[Key, SettingOrigin]) -> Iterator[str]:
    """Yield a sentence for what has no effect. `origins`: where the operator set each setting. Pure.

    A setting that has its default says nothing: somebody may have copied the whole of `default.toml`.
    """
    for rule in _RULES:
        found = [name for name in rule.names if _is_set(name, settings, origins)]
        if found and rule.applies(settings):
            names = ", ".join(f"{name} in {origins[_key(name)].place}" for name in found)
            has, it = ("has", "it") if len(found) == 1 else ("have", "them")
            yield f"{names} {has} no effect: {rule.why}. {rule.remedy}, or delete {it}."
    for server in settings.mcp.servers:
        other_kind = ("headers",) if server.command else ("args", "env")
        for name in other_kind:
            if getattr(server, name):
                kind = "program" if server.command else "url"
                yield f"{name} of the server {server.name} in mcp.servers has no effect: it has a {kind}. Delete it."
        if not (server.guilds and server.roles):
            yield (
                f"The server {server.name} in mcp.servers has no effect: it is for nobody. Name the Discord servers "
                "and the roles that it is for in its guilds and roles (docs/tools.md)."
            )


def _is_set(name: str, settings: Settings, origins: Mapping[Key, SettingOrigin]) -> bool:
    section, field = _key(name)
    value = getattr(getattr(settings, section), field)
    return (section, field) in origins and bool(value != SETTINGS[(section, field)].default)


def _key(name: str) -> tuple[str, str]:
    section, _, field = name.partition(".")
    return section, field
