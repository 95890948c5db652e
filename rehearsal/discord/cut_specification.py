"""Makes `discord-api.json` anew from Discord's file, with the routes that the local Discord serves and their schemas.

`python -m rehearsal.discord.cut_specification COMMIT openapi.json`: the file is `specs/openapi.json` of
https://github.com/discord/discord-api-spec at that commit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rehearsal.discord.rest.routes import served_routes
from rehearsal.discord.rest.wire import API_PREFIX
from rehearsal.discord.specification import PATH, route_key

_SOURCE = "https://github.com/discord/discord-api-spec, specs/openapi.json (MIT, LICENSE-discord-api-spec.txt)"
_REFERENCE = "#/components/schemas/"
# What says nothing of the form.
_NOTES = ("title", "description", "discriminator", "x-discord-union", "contentEncoding")


def cut(openapi: dict[str, Any], routes: set[str]) -> dict[str, Any]:
    """Return the schemas of these routes, and all that they refer to, as JSON Schema 2020-12."""
    schemas = {name: _plain(schema) for name, schema in openapi["components"]["schemas"].items()}
    schemas["SnowflakeType"].pop("format")
    kept: dict[str, Any] = {}
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if method != "parameters" and (key := route_key(method.upper(), path)) in routes:
                content = operation.get("requestBody", {}).get("content", {})
                answers = {int(code): each for code, each in operation["responses"].items() if code.isdigit()}
                kept[key] = {
                    "request": _plain(_json_schema({"content": content})),
                    "answers": {str(code): _plain(_json_schema(each)) for code, each in answers.items() if code < 300},
                }
    reached = _reached(kept, schemas)
    return {"routes": kept, "$defs": {name: schemas[name] for name in sorted(reached)}}


def _json_schema(body: dict[str, Any]) -> Any:
    return body.get("content", {}).get("application/json", {}).get("schema")


def _plain(schema: Any) -> Any:
    """Return a schema without notes. Unions become `anyOf`, which ends at the first that fits, and lists of constants
    become an enumeration. The keys of localizations are Discord's locales.
    """
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema.replace(_REFERENCE, "#/$defs/") if isinstance(schema, str) else schema
    constants = [each["const"] for each in schema.get("oneOf", ()) if "const" in each]
    if constants and len(constants) == len(schema["oneOf"]):
        return {"enum": constants}
    plain = {{"oneOf": "anyOf"}.get(key, key): _plain(each) for key, each in schema.items() if key not in _NOTES}
    if "properties" in schema:
        # Some properties have the names of notes.
        plain["properties"] = {name: _plain(each) for name, each in schema["properties"].items()}
        for name, field in plain["properties"].items():
            if name.endswith("_localizations"):
                field["propertyNames"] = {"$ref": "#/$defs/AvailableLocalesEnum"}
    return plain


def _reached(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that a part refers to, also through others."""
    reached: set[str] = set()
    todo = [part]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            todo += each.values()
            name = str(each.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in reached:
                reached.add(name)
                todo.append(schemas[name])
        elif isinstance(each, list):
            todo += each
    return reached


def _write(commit: str, openapi: Path) -> None:
    found = cut(
        json.loads(openapi.read_text("utf-8")),
        {route_key(method, path.removeprefix(API_PREFIX)) for method, path in served_routes()},
    )
    # One route or schema a line, so that a newer specification can be compared.
    parts = [
        f"{json.dumps(part)}: {{\n" + ",\n".join(_line(*each) for each in sorted(found[part].items())) + "\n}"
        for part in ("routes", "$defs")
    ]
    PATH.write_text(
        "{" + f'"source": {json.dumps(f"{_SOURCE}, commit {commit}")},\n' + ",\n".join(parts) + "}\n", "utf-8"
    )


def _line(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'), sort_keys=True)}"


if __name__ == "__main__":
    _write(sys.argv[1], Path(sys.argv[2]))
