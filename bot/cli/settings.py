"""`roomtone settings`: shows what the operator has changed."""

from __future__ import annotations

from bot.cli.output import say
from config.load import load
from config.problems import toml_value
from config.schema import SETTINGS


def command() -> None:
    """Show the settings that differ from their defaults, as lines of roomtone.toml. Keys are not shown."""
    settings = load()
    values = [(each, getattr(getattr(settings, each.key[0]), each.key[1])) for each in SETTINGS.values()]
    changed = [
        f"{each.name} = {'(not shown)' if each.secret else toml_value(value)}"
        for each, value in values
        if value != each.default
    ]
    say("\n".join(changed) or "Every setting has its default.")
