"""`roomtone settings`: shows what the operator has changed."""

from __future__ import annotations

from bot.cli.output import say
from config.load import default_settings, load
from config.problems import toml_value
from config.schema import SETTINGS


def command() -> None:
    """Show the settings that differ from their defaults, as lines of roomtone.toml. Keys are not shown."""
    settings, defaults = load(), default_settings()
    lines: list[str] = []
    for each in SETTINGS.values():
        section, name = each.key
        value = getattr(getattr(settings, section), name)
        if value != getattr(getattr(defaults, section), name):
            lines.append(f"{each.name} = {'(not shown)' if each.secret else toml_value(value)}")
    say("\n".join(lines) or "Every setting has its default.")
