"""`roomtone settings`: shows what the operator has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.output import say
from config.load import default_settings, load
from config.problems import toml_value
from config.schema import SETTINGS, Setting, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator


def command() -> None:
    """Show the settings that differ from their defaults, as lines of roomtone.toml. Keys are not shown."""
    lines = [
        f"{each.name} = {'(not shown)' if each.secret else toml_value(value)}"
        for each, value in changed_settings(load())
    ]
    say("\n".join(lines) or "Every setting has its default.")


def changed_settings(settings: Settings) -> Iterator[tuple[Setting, object]]:
    """Yield each setting that differs from its default, with its value."""
    defaults = default_settings()
    for each in SETTINGS.values():
        section, name = each.key
        value = getattr(getattr(settings, section), name)
        if value != getattr(getattr(defaults, section), name):
            yield each, value
