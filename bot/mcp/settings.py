"""Settings of MCP servers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from bot.brain.tools.tool import Permission
from voice.endpoint_settings import checked_url


class McpServerSettings(BaseModel):
    """One server, `[[mcp.servers]]`: a program to start, or a URL."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z][a-z0-9_-]{0,30}$",
            description="What the server is called here; its tools are called name_tool.",
        ),
    ]
    command: Annotated[
        str, Field(description="Program to start and speak to on its standard input and output, for example uvx.")
    ] = ""
    args: Annotated[tuple[str, ...], Field(description="The program's arguments.")] = ()
    env: Annotated[
        dict[str, SecretStr],
        Field(
            description="Environment variables of the program. It gets these, PATH, HOME and the like; none of ours."
        ),
    ] = Field(default_factory=dict)
    url: Annotated[
        str,
        Field(description="Address of a server that speaks streamable HTTP, for example http://127.0.0.1:8000/mcp."),
    ] = ""
    headers: Annotated[
        dict[str, SecretStr], Field(description="Headers of each request, for example Authorization.")
    ] = Field(default_factory=dict)
    tools: Annotated[
        tuple[str, ...],
        Field(
            description='Which of its tools may be called; ["*"] means all. Default none: `roomtone doctor` lists them.'
        ),
    ] = ()
    read_only: Annotated[
        tuple[str, ...],
        Field(
            description='Which of its tools change nothing; ["*"] means all. Those with the readOnlyHint of the server '
            "change nothing either. The others run only on an order, or after the bot has asked."
        ),
    ] = ()
    words: Annotated[
        tuple[str, ...],
        Field(
            description="Further words for what its tools act on, as in your language (datei, kalender), so that an "
            "order with them needs no asking. The words of its tools' names and its own always count."
        ),
    ] = ()
    permission: Annotated[
        Permission,
        Field(
            description="For whom its tools run: anyone, members (in the channel) or moderators (those of them who may "
            "manage the server)."
        ),
    ] = Permission.MEMBERS
    timeout_s: Annotated[float, Field(gt=0, le=120, description="Seconds that one call may take. Default 10.")] = 10.0

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> McpServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError(f"the server {self.name!r} needs either a command or a url")
        try:
            checked_url(self.url)
        except ValueError as error:
            raise ValueError(
                f"the url of the server {self.name!r} must be an address that begins with http:// or https://"
            ) from error
        return self

    def allows(self, tool: str) -> bool:
        return "*" in self.tools or tool in self.tools

    def has_side_effects(self, tool: str) -> bool:
        return "*" not in self.read_only and tool not in self.read_only


class McpSettings(BaseModel):
    """MCP servers whose tools the language model may call (docs/tools.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: Annotated[
        tuple[McpServerSettings, ...],
        Field(
            description="The servers, each a table [[mcp.servers]] with a name, a command or a url, and the tools that "
            "may be called (docs/tools.md).",
            examples=[[{"name": "files", "command": "uvx", "args": ["mcp-server-files"], "tools": ["read_file"]}]],
        ),
    ] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> McpSettings:
        names = [server.name for server in self.servers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two servers are called {twice!r}; give one of them another name")
        return self
