"""Makes `discord-api.json` anew from Discord's file, with the routes that the local Discord serves and their schemas.

`python -m rehearsal.discord.cut_specification COMMIT openapi.json`: the file is `specs/openapi.json` of
https://github.com/discord/discord-api-spec at that commit.
"""

from __future__ import annotations

import functools
import json
import re
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


_dumped = functools.partial(json.dumps, separators=(",", ":"), sort_keys=True)


def cut(openapi: dict[str, Any], routes: set[str]) -> dict[str, Any]:
    """Return the schemas of these routes, and all that they refer to, as JSON Schema 2020-12."""
    schemas = {name: _plain(schema) for name, schema in openapi["components"]["schemas"].items()}
    kept = {
        key: {
            "request": _plain(_schema(operation.get("requestBody", {}))),
            "answers": {code: _plain(_schema(each)) for code, each in operation["responses"].items() if code < "3"},
        }
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        if (key := route_key(method.upper(), path)) in routes
    }
    reached, new = set[str](), _named(kept)
    while new:
        reached |= new
        new = _named([schemas[name] for name in new]) - reached
    return {"routes": kept, "$defs": {name: schemas[name] for name in reached}}


def _schema(body: dict[str, Any]) -> Any:
    return body.get("content", {}).get("application/json", {}).get("schema")


def _named(part: Any) -> set[str]:
    """Return the names of the schemas that a part refers to."""
    return set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(part)))


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


def _write(commit: str, openapi: dict[str, Any]) -> None:
    found = cut(openapi, {route_key(method, path.removeprefix(API_PREFIX)) for method, path in served_routes()})
    # One route or schema a line, so that a newer specification can be compared.
    parts = [
        f"{_dumped(part)}:{{\n"
        + ",\n".join(f"{_dumped(key)}:{_dumped(each)}" for key, each in sorted(found[part].items()))
        for part in found
    ]
    source = _dumped(f"{_SOURCE}, commit {commit}")
    PATH.write_text(f'{{"source":{source},\n' + "\n},\n".join(parts) + "\n}}\n", "utf-8")


if __name__ == "__main__":
    _write(sys.argv[1], json.loads(Path(sys.argv[2]).read_text("utf-8")))
