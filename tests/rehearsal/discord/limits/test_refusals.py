"""What Discord refuses of a bot's requests, and where it says that the mistake is. The rows are from Discord's
specification and reference, and were written before the code that they try.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.discord import specification
from rehearsal.discord.cut_specification import cut
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.limits import RefusedError, check_request, new_message_fields
from rehearsal.discord.rest.routes import served_routes
from rehearsal.discord.rest.wire import API_PREFIX
from rehearsal.discord.specification import mistakes_in, route_key
from rehearsal.errors import LocalDiscordError

MESSAGES = ("POST", "/channels/{channel}/messages")
EDIT = ("PATCH", "/webhooks/{application}/{token}/messages/{message}")
THREADS = ("POST", "/channels/{channel}/threads")
CALLBACK = ("POST", "/interactions/{interaction}/{token}/callback")
COMMANDS = ("PUT", "/applications/{application}/commands")
ME = ("PATCH", "/guilds/{guild}/members/@me")
STATE = ("PATCH", "/guilds/{guild}/voice-states/@me")
OVER = {n: "x" * (n + 1) for n in (32, 45, 80, 100, 150, 256, 1024, 2000, 4096)}
BUTTON = {"type": 2, "style": 1, "label": "Yes", "custom_id": "yes"}
OPTION = {"label": "One", "value": "one"}
MENU = {"type": 3, "custom_id": "menu", "options": [OPTION, {"label": "Two", "value": "two"}]}
INPUT = {"type": 4, "custom_id": "text", "style": 1}
LINK = {"type": 2, "style": 5, "label": "Page", "url": "https://example.org"}
WORDS = {"type": 3, "name": "words", "description": "What to look for."}


def embed(**parts: object) -> Json:
    """Return a message with one embed."""
    return {"embeds": [parts]}


def row(*components: Json) -> Json:
    """Return a message with one row."""
    return {"components": [{"type": 1, "components": list(components)}]}


def cmd(**changes: object) -> list[Json]:
    """Return the commands of a bot that has one."""
    return [{"name": "recall", "description": "Finds what was said.", **changes}]


def opt(**changes: object) -> list[Json]:
    """Return one command with one option."""
    return cmd(options=[{**WORDS, **changes}])


def say(**parts: object) -> Json:
    """Return an answer with a message."""
    return {"type": 4, "data": parts}


def suggest(*choices: Json) -> Json:
    """Return suggestions."""
    return {"type": 8, "data": {"choices": list(choices)}}


def window(*fields: Json, **changes: object) -> Json:
    """Return a window with these fields."""
    labels = [{"type": 18, "label": "L", "component": field} for field in fields]
    return {"type": 9, "data": {"custom_id": "w", "title": "T", "components": labels, **changes}}


C0 = "components.0.components.0."
D0 = "data.components.0.component."
_REFUSED = [
    (MESSAGES, {"content": 7}, "content"),
    (MESSAGES, {"content": OVER[2000]}, "content"),
    (MESSAGES, {"content": " \n "}, 50006),
    (MESSAGES, {}, 50006),
    (MESSAGES, {"content": "x", "tts": "yes"}, "tts"),
    (MESSAGES, {"embeds": {"title": "x"}}, "embeds"),
    (MESSAGES, {"embeds": [{"title": "x"}] * 11}, "embeds"),
    (MESSAGES, embed(title=OVER[256]), "embeds.0.title"),
    (MESSAGES, embed(fields=[{"name": "", "value": "x"}]), "embeds.0.fields.0.name"),
    (MESSAGES, embed(title="x", color=1 << 24), "embeds.0.color"),
    (MESSAGES, embed(title="x", timestamp="yesterday"), "embeds.0.timestamp"),
    (MESSAGES, embed(title="x", footer={"icon_url": "https://example.org/i.png"}), "embeds.0.footer.text"),
    (MESSAGES, {"embeds": [{"description": "x" * 4000}, {"description": "x" * 2001}]}, "embeds"),
    (MESSAGES, embed(), "embeds.0.description"),
    (MESSAGES, row(*({**BUTTON, "custom_id": c} for c in "abcdef")), "components.0.components"),
    (
        MESSAGES,
        {"components": [{"type": 1, "components": [BUTTON]}, {"type": 1, "components": []}]},
        "components.1.components",
    ),
    (MESSAGES, row({"type": 2, "label": "Yes", "custom_id": "yes"}), C0 + "style"),
    (MESSAGES, row({"type": 2, "style": 1, "custom_id": "yes"}), C0 + "label"),
    (MESSAGES, row({**LINK, "custom_id": "page"}), C0 + "custom_id"),
    (MESSAGES, row({"type": 2, "style": 1, "label": "Yes"}), C0 + "custom_id"),
    (MESSAGES, row({**BUTTON, "custom_id": ""}), C0 + "custom_id"),
    (MESSAGES, row(BUTTON, MENU), "components.0"),
    (MESSAGES, row({**MENU, "options": [{"label": str(n), "value": str(n)} for n in range(26)]}), C0 + "options"),
    (MESSAGES, row({**MENU, "options": [OPTION, OPTION]}), C0 + "options.1.value"),
    (MESSAGES, row({**MENU, "max_values": 26}), C0 + "max_values"),
    (MESSAGES, row({**MENU, "options": [{**OPTION, "description": OVER[100]}]}), C0 + "options.0.description"),
    (MESSAGES, row({**BUTTON, "type": 99}), C0 + "type"),
    (MESSAGES, {"content": "x", "allowed_mentions": {"parse": ["nobody"]}}, "allowed_mentions.parse.0"),
    (MESSAGES, {"content": "x", "message_reference": {"message_id": "abc"}}, "message_reference.message_id"),
    (MESSAGES, {"content": "x", "flags": "loud"}, "flags"),
    (THREADS, {"name": OVER[100], "type": 11}, "name"),
    (THREADS, {"name": "x", "type": 11, "auto_archive_duration": 5}, "auto_archive_duration"),
    (COMMANDS, cmd(name="Recall"), "0.name"),
    (COMMANDS, opt(type=12), "0.options.0.type"),
    (COMMANDS, opt(choices=[{"name": str(n), "value": str(n)} for n in range(26)]), "0.options.0.choices"),
    (COMMANDS, cmd(options=[WORDS, {**WORDS, "name": "when", "required": True}]), "0.options.1"),
    (COMMANDS, opt(type=4, min_value=5, max_value=4), "0.options.0.min_value"),
    (COMMANDS, cmd(name_localizations={"xx": "recall"}), "0.name_localizations"),
    (COMMANDS, opt(autocomplete=True, choices=[{"name": "a", "value": "a"}]), "0.options.0.autocomplete"),
    (COMMANDS, [{"name": f"c{n}", "description": "x"} for n in range(101)], 30032),
    (CALLBACK, {"type": 99}, "type"),
    (CALLBACK, suggest({"name": "", "value": "x"}), "data.choices.0.name"),
    (CALLBACK, window(INPUT, title=OVER[45]), "data.title"),
    (CALLBACK, window({"type": 4, "custom_id": "text"}), D0 + "style"),
    (CALLBACK, window({**INPUT, "min_length": 9, "max_length": 4}), D0 + "min_length"),
    (CALLBACK, say(content=OVER[2000]), "data.content"),
    (EDIT, embed(description=OVER[4096]), "embeds.0.description"),
    (ME, {"nick": OVER[32]}, "nick"),
    (MESSAGES, {"content": ["x"]}, "content"),
    (MESSAGES, embed(title="x", fields=[{"name": "x", "value": "x"}] * 26), "embeds.0.fields"),
    (MESSAGES, embed(title="x", fields=[{"name": "x", "value": "x", "inline": "maybe"}]), "embeds.0.fields.0.inline"),
    (MESSAGES, embed(title="x", color="red"), "embeds.0.color"),
    (MESSAGES, embed(title="x", url="no address"), "embeds.0.url"),
    (MESSAGES, embed(title="x", url="ftp://example.org/x"), "embeds.0.url"),
    (MESSAGES, embed(title="x", author={"url": "https://example.org"}), "embeds.0.author.name"),
    (MESSAGES, embed(title="  "), "embeds.0.description"),
    (MESSAGES, embed(fields=[{"name": "x", "value": "\t"}]), "embeds.0.fields.0.value"),
    (MESSAGES, {"components": [row({**BUTTON, "custom_id": c})["components"][0] for c in "abcdef"]}, "components"),
    (MESSAGES, row({**BUTTON, "style": 9}), C0 + "style"),
    (MESSAGES, row({"type": 2, "style": 5, "label": "Page"}), C0 + "url"),
    (MESSAGES, row({**BUTTON, "label": OVER[80]}), C0 + "label"),
    (MESSAGES, row(BUTTON, BUTTON), "components.0.components.1.custom_id"),
    (MESSAGES, row(MENU, {**MENU, "custom_id": "other"}), "components.0"),
    (MESSAGES, row({**MENU, "options": []}), C0 + "options"),
    (MESSAGES, row({**MENU, "min_values": 2, "max_values": 1}), C0 + "min_values"),
    (MESSAGES, row({**MENU, "placeholder": OVER[150]}), C0 + "placeholder"),
    (MESSAGES, row({**MENU, "options": [{"label": "One"}]}), C0 + "options.0.value"),
    (
        MESSAGES,
        row({**MENU, "options": [{**OPTION, "default": True}, {"label": "2", "value": "2", "default": True}]}),
        C0 + "options",
    ),
    (MESSAGES, {"components": [BUTTON]}, "components.0.type"),
    (MESSAGES, {"content": "x", "nonce": "x" * 26}, "nonce"),
    (MESSAGES, {"content": "x", "allowed_mentions": {"parse": ["users"], "users": ["2001"]}}, "allowed_mentions"),
    (MESSAGES, {"content": "x", "attachments": [{"filename": "x.txt"}]}, "attachments.0.id"),
    (THREADS, {"type": 11}, "name"),
    (THREADS, {"name": "x", "type": 11, "rate_limit_per_user": 21601}, "rate_limit_per_user"),
    (COMMANDS, [{"name": "recall"}], "0.description"),
    (COMMANDS, cmd(options=[{**WORDS, "name": f"o{n}"} for n in range(26)]), "0.options"),
    (COMMANDS, cmd(options=[WORDS, WORDS]), "0.options.1.name"),
    (COMMANDS, cmd() + cmd(), "1.name"),
    (COMMANDS, opt(type=4, choices=[{"name": "one", "value": "one"}]), "0.options.0.choices.0.value"),
    (COMMANDS, cmd(options=[WORDS, {"type": 1, "name": "sub", "description": "x"}]), "0.options.1.type"),
    (COMMANDS, cmd(contexts=[9]), "0.contexts.0"),
    (COMMANDS, opt(min_length=9, max_length=4), "0.options.0.min_length"),
    (
        COMMANDS,
        cmd(
            options=[
                {**WORDS, "name": f"o{n}", "choices": [{"name": f"choice {m}", "value": "x" * 10} for m in range(25)]}
                for n in range(25)
            ]
        ),
        "0",
    ),
    (CALLBACK, suggest(*({"name": str(n), "value": n} for n in range(26))), "data.choices"),
    (CALLBACK, {"type": 9, "data": {"title": "T", "components": [{"type": 10, "content": "x"}]}}, "data.custom_id"),
    (CALLBACK, window({**INPUT, "max_length": 4001}), D0 + "max_length"),
    (CALLBACK, window({**INPUT, "max_length": 4, "value": "hello"}), D0 + "value"),
    (CALLBACK, say(content="  "), 50006),
    (EDIT, {"content": OVER[2000]}, "content"),
    (STATE, {"channel_id": "600", "suppress": "no"}, "suppress"),
]

_TAKEN = [
    (MESSAGES, {"content": OVER[2000][1:]}),
    (
        MESSAGES,
        embed(title=OVER[256][1:], footer={"text": "x"}, author={"name": "x"}, color=0, url="https://example.org"),
    ),
    (MESSAGES, embed(image={"url": "attachment://chart.png"}, timestamp="2026-11-20T15:00:00+00:00")),
    (MESSAGES, row(*({**BUTTON, "custom_id": each} for each in "abcd"), LINK)),
    (MESSAGES, row({"type": 2, "style": 2, "emoji": {"name": "x"}, "custom_id": "x", "url": None})),
    (MESSAGES, row({**MENU, "min_values": 0, "max_values": 2})),
    (MESSAGES, {"content": "x", "nonce": 7, "enforce_nonce": True, "message_reference": {"message_id": 7}}),
    (MESSAGES, {"content": "x", "allowed_mentions": {"parse": [], "users": ["2001"], "replied_user": False}}),
    (MESSAGES, {"flags": 1 << 15, "components": [{"type": 17, "components": [{"type": 10, "content": "x"}]}]}),
    (THREADS, {"name": "x", "type": 11, "auto_archive_duration": 1440}),
    (ME, {"nick": None}),
    (COMMANDS, [*({"name": f"c{n}", "description": "x"} for n in range(100)), {"type": 2, "name": "Show the Record"}]),
    (COMMANDS, cmd(name="größe", description_localizations={"de": OVER[100][1:]}, contexts=[0])),
    (COMMANDS, cmd(options=[{"type": 1, "name": "sub", "description": "x", "options": [WORDS]}])),
    (COMMANDS, opt(type=4, min_value=1, max_value=9, choices=[{"name": "one", "value": 1}])),
    (CALLBACK, suggest({"name": OVER[100][1:], "value": OVER[100][1:]}, {"name": "seven", "value": "7"})),
    (CALLBACK, window({**INPUT, "value": "x", "min_length": 1, "max_length": 1})),
    (CALLBACK, {"type": 5, "data": {"flags": 64}}),
    (CALLBACK, {"type": 6}),
]


def _places(errors: Json, place: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the place of each mistake in Discord's tree."""
    for key, below in errors.items():
        if key == "_errors":
            assert all(each.keys() == {"code", "message"} for each in below)
            yield ".".join(place)
        else:
            yield from _places(below, (*place, key))


def _outcome(route: tuple[str, str], body: Any) -> list[str] | int | None:
    """Return where the mistakes are, the code of another refusal, or None if Discord takes it."""
    try:
        check_request(route_key(*route), body)
        if route == MESSAGES or body == say(content="  "):
            new_message_fields(body.get("data", body))
    except RefusedError as error:
        return error.code if error.errors is None else list(_places(error.errors))
    return None


@pytest.mark.parametrize(("route", "body", "where"), _REFUSED)
def test_what_discord_refuses_is_refused_where_the_mistake_is(
    route: tuple[str, str], body: Any, where: str | int
) -> None:
    """The mistake is named at its place, or the refusal has a code of its own."""
    assert _outcome(route, body) == (where if isinstance(where, int) else [where])


def test_what_discord_takes_is_taken() -> None:
    """The largest that fits, and the forms that Discord understands."""
    assert [(body, found) for route, body in _TAKEN if (found := _outcome(route, body)) is not None] == []


def test_without_the_specification_nothing_is_taken_for_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there is an error that names it, and not a local Discord that takes everything."""
    monkeypatch.setattr(specification, "PATH", tmp_path / "discord-api.json")
    specification.read.cache_clear()
    with pytest.raises(LocalDiscordError, match=r"discord-api\.json"):
        mistakes_in("GET /none", 200, {})
    specification.read.cache_clear()


def test_the_specification_has_every_route_that_is_served() -> None:
    """A new route is not held against Discord's specification until the file is made anew."""
    served = {route_key(method, path.removeprefix(API_PREFIX)) for method, path in served_routes()}
    assert served - set(specification.read()["routes"]) == {"* /{}"}


def test_the_cut_has_what_its_routes_refer_to() -> None:
    """Unions and lists of constants get a form that is quick to check, and notes go, but no property of that name."""
    referring = {"properties": {"title": {"$ref": "#/components/schemas/Kind"}}, "description": "A note."}
    body = {"content": {"application/json": {"schema": referring}}}
    openapi = {
        "paths": {"/x/{id}": {"parameters": [], "get": {"responses": {"200": body, "4XX": {}}}}, "/y": {}},
        "components": {"schemas": {"Kind": {"oneOf": [{"const": 1}, {"const": 2}]}, "Other": {}}},
    }
    found = cut(openapi, {"GET /x/{}"})
    assert found["$defs"] == {"Kind": {"enum": [1, 2]}}
    answer = {"properties": {"title": {"$ref": "#/$defs/Kind"}}}
    assert found["routes"] == {"GET /x/{}": {"request": None, "answers": {"200": answer}}}
