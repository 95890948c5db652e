"""The page of the settings and the schema agree, and it explains each key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from config.document import COMMON, REFERENCE, render
from config.load import load
from config.schema import SETTINGS

TEXT = REFERENCE.read_text(encoding="utf-8")


def in_toml(value: Any) -> Any:
    """Return a default as TOML represents it."""
    match value:
        case SecretStr():
            return value.get_secret_value()
        case tuple() | list() | frozenset():
            return [in_toml(each) for each in value]
        case Path():
            return str(value)
        case _:
            return value


def test_the_reference_is_what_the_schema_writes() -> None:
    """`docs/settings.md` is up to date and lists every setting; `python -m config.document` writes it anew."""
    assert render() == TEXT, "docs/settings.md is not of this schema: run `python -m config.document`"
    for setting in SETTINGS.values():
        assert f"\n- `{setting.key[-1]}`: " in TEXT, setting.name


def test_the_first_screen_holds_what_people_change() -> None:
    """The page begins with the common settings and their defaults, which can be copied unchanged."""
    shown = tomllib.loads(TEXT.split("```toml\n")[1].split("```")[0])
    assert sorted(COMMON) == sorted(f"{section}.{key}" for section, table in shown.items() for key in table)
    for name in COMMON:
        section, key = name.split(".")
        default = SETTINGS[(section, key)].default
        assert shown[section][key] == ("yours" if default is None else in_toml(default)), name


def test_a_default_that_a_description_names_is_the_default() -> None:
    """A description that says `Default 300: …` says why, and so names the value a second time."""
    named = {
        setting.name: (told[1], setting.default)
        for setting in SETTINGS.values()
        if (told := re.search(r"\bDefault (\d[\d.]*\d|\d)", setting.field.description or ""))
    }
    assert named
    assert {
        name: (told, default)
        for name, (told, default) in named.items()
        if told != str(default) and not (isinstance(default, int | float) and float(told) == default)
    } == {}


def test_the_example_environment_is_valid(tmp_path: Path) -> None:
    """An unchanged copy of `.env.example` changes nothing, and its commented lines name existing settings."""
    example = (Path(__file__).parents[2] / ".env.example").read_text(encoding="utf-8")
    (tmp_path / ".env").write_text(example, encoding="utf-8")
    assert load(directory=tmp_path, environ={}) == load(directory=tmp_path / "empty", environ={})
    suggested = [
        line.removeprefix("# ").split("=")[0] for line in example.splitlines() if line.startswith("# ROOMTONE")
    ]
    assert suggested.pop() == "ROOMTONE_DATABASE_URL"
    assert len(suggested) == 4
    assert set(suggested) <= {setting.variable for setting in SETTINGS.values()}
