"""Commands that Discord would refuse are refused, because a bot would have none of its commands then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.limits import RefusedError, check_commands

if TYPE_CHECKING:
    from rehearsal.discord.guild.payloads import Json


def command(**changes: object) -> Json:
    """Return a command that Discord takes, but for the changes."""
    return {"type": 1, "name": "recall", "description": "Finds what was said.", **changes}


def option(name: str = "words", **changes: object) -> Json:
    """Return an option of a command."""
    return {"type": 3, "name": name, "description": "What to look for.", **changes}


def options(count: int, **changes: object) -> list[Json]:
    """Return several options with names of their own."""
    return [option(f"o{number}", **changes) for number in range(count)]


def choices(count: int, value: object = "x") -> list[Json]:
    """Return several choices."""
    return [{"name": f"choice {number}", "value": value} for number in range(count)]


LONG = "x" * 101


@pytest.mark.parametrize(
    ("declared", "refused"),
    [
        (command(), ""),
        (command(name="catch-up"), ""),
        (command(name="größe", description_localizations={"de": "x" * 100}), ""),
        ({"type": 2, "name": "Show the Record"}, ""),
        (command(name="Recall"), "small letters"),
        (command(name="recall it"), "small letters"),
        (command(name="x" * 33), "small letters"),
        (command(name_localizations={"de": "Suche"}), "small letters"),
        (command(description=""), "1 to 100"),
        (command(description=LONG), "1 to 100"),
        ({"type": 1, "name": "recall"}, "description"),
        (command(description_localizations={"de": LONG}), "description"),
        (command(options=[option(description=LONG)]), "/recall words"),
        (command(options=[option(description_localizations={"de": LONG})]), "/recall words"),
        (command(options=[option(type=1, options=[option(description=LONG)])]), "/recall words words"),
        (command(options=options(25)), ""),
        (command(options=options(26)), "25 options"),
        (command(options=[option(), option()]), "its own name"),
        (command(options=[option(required=True), option("when")]), ""),
        (command(options=[option(), option("when", required=True)]), "come first"),
        (command(options=[option(choices=choices(25))]), ""),
        (command(options=[option(choices=choices(26))]), "25 choices"),
        (command(options=[option(choices=choices(1, LONG))]), "choice"),
        (command(options=[option(choices=choices(1, 7))]), ""),
        (command(options=options(25, choices=choices(25, "x" * 10))), "8000"),
    ],
)
def test_a_command_has_discords_limits(declared: Json, refused: str) -> None:
    """Names, descriptions in every language, options and choices each have their limit."""
    if not refused:
        check_commands([declared])
        return
    with pytest.raises(RefusedError, match=refused):
        check_commands([command(name="status"), declared])


def test_a_bot_has_at_most_a_hundred_commands() -> None:
    """Commands of other kinds do not count."""
    hundred = [command(name=f"c{number}") for number in range(100)]
    check_commands([*hundred, {"type": 2, "name": "Show"}])
    with pytest.raises(RefusedError, match="100 commands"):
        check_commands([*hundred, command(name="more")])
