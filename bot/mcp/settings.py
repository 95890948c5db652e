"""Settings of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field, SecretStr, model_validator

from voice.endpoint_settings import EndpointUrl

if TYPE_CHECKING:
    from bot.brain.tools.tool import Asker

DiscordId = Annotated[int, Field(gt=0)]
ToolUse = Literal["ask", "never ask", "off"]


class McpServerSettings(BaseModel, extra="forbid", frozen=True):
    """One server, `[[mcp.servers]]`: a program to start, or a URL."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z][a-z0-9-]{0,30}$",
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
        EndpointUrl,
        Field(description="Address of a server that speaks streamable HTTP, for example http://127.0.0.1:8000/mcp."),
    ] = ""
    headers: Annotated[
        dict[str, SecretStr], Field(description="Headers of each request, for example Authorization.")
    ] = Field(default_factory=dict)
    guilds: Annotated[
        tuple[DiscordId, ...],
        Field(description="Ids of the Discord servers that it is for, each also in discord.guilds."),
    ] = ()
    roles: Annotated[
        tuple[DiscordId | Literal["everyone"], ...],
        Field(
            description='Ids of the roles whose members may use it, while they are in the channel; ["everyone"] means '
            "everybody there. Default: nobody."
        ),
    ] = ()
    tools: Annotated[
        dict[str, ToolUse],
        Field(
            description="What becomes of a call, by tool: ask (whoever asked has to press Do it first), never ask, or "
            "off. Without: ask. All have to be approved once (`roomtone doctor --approve`)."
        ),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> McpServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError(f"the server {self.name!r} needs either a command or a url")
        return self

    def use_of(self, tool: str) -> ToolUse:
        return self.tools.get(tool, "ask")

    def permits(self, asker: Asker) -> bool:
        """Return whether this person may use its tools now."""
        return asker.present and ("everyone" in self.roles or not asker.roles.isdisjoint(self.roles))


class McpSettings(BaseModel, extra="forbid", frozen=True):
    """MCP servers whose tools the language model may call (docs/tools.md)."""

    servers: Annotated[
        tuple[McpServerSettings, ...],
        Field(
            description="The servers, each a table [[mcp.servers]] with a name, a command or a url, and for whom it is "
            "(docs/tools.md).",
            examples=[
                [
                    {
                        "name": "notes",
                        "command": "uvx",
                        "args": ["mcp-server-git==2026.10.19"],
                        "guilds": [123456789012345678],
                        "roles": ["everyone"],
                        "tools": {"git_log": "never ask"},
                    }
                ]
            ],
        ),
    ] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> McpSettings:
        names = [server.name for server in self.servers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two servers are called {twice!r}; give one of them another name")
        return self
