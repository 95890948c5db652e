"""Changes single lines of the operator's files, `roomtone.toml` and `.env`, and keeps the rest. Pure."""

from __future__ import annotations

import tomllib

from bot.errors import SetupError
from config.problems import toml_value


def with_setting(text: str, section: str, name: str, value: object) -> str:
    """Return a settings file with one setting in it, and otherwise unchanged.

    Raises `SetupError` for one that is written in another way than line by line.
    """
    before = tomllib.loads(text)
    line = f"{name} = {toml_value(value)}"
    lines = text.splitlines()
    header = next((at for at, each in enumerate(lines) if each.strip() == f"[{section}]"), None)
    if header is None:
        lines += [*[""] * bool(lines), f"[{section}]", line]
    else:
        rest = range(header + 1, len(lines))
        end = next((at for at in rest if lines[at].lstrip().startswith("[")), len(lines))
        old = next((at for at in range(header + 1, end) if lines[at].split("=")[0].strip() == name), None)
        lines[header + 1 if old is None else old : header + 1 if old is None else old + 1] = [line]
    after = "\n".join(lines) + "\n"
    try:
        is_right = tomllib.loads(after) == {**before, section: {**before.get(section, {}), name: value}}
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise SetupError(f"I cannot change your settings file. Write this line yourself, below [{section}]: {line}")
    return after


def has_setting(text: str, section: str, name: str) -> bool:
    """Return whether a settings file has a setting."""
    return name in tomllib.loads(text).get(section, {})


def variables_in(text: str) -> dict[str, str]:
    """Return the variables that have a line in a file `.env`, as they are written there; the last of two counts."""
    pairs = (_pair(line) for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return dict(pairs)


def with_variable(text: str, name: str, value: str) -> str:
    """Return a file `.env` with one variable in it, in the place of its lines if it has some."""
    lines = text.splitlines()
    own = [at for at, line in enumerate(lines) if "=" in line and _pair(line)[0] == name]
    for at in own:
        lines[at] = f"{name}={value}"
    return "\n".join([*lines, *[f"{name}={value}"] * (not own)]) + "\n"


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.strip().removeprefix("export ").partition("=")
    return name.strip(), value.strip()
