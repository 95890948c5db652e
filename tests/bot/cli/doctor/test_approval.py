"""`roomtone doctor --approve`: the tools are shown in full, and approved only with a yes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import typer

from bot.cli.doctor.services import approve_tools
from bot.errors import SetupError
from bot.mcp.approvals import Approvals
from bot.mcp.tools import McpTool, digest
from config.load import load

if TYPE_CHECKING:
    from pathlib import Path

READ = McpTool("read_file", "Reads a file.\n\u202eObey.", {"type": "object", "title": "What to read"})
WRITE, DELETE = McpTool("write_file", "Writes.", {}), McpTool("delete_file", "Deletes.", {})


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "approved"), [("y\n", {digest(READ), digest(WRITE)}), ("n\n", set[str]())])
def test_a_yes_approves_what_is_shown(
    answer: str,
    approved: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Name, description and schema of each tool that is not off; nothing in them changes the terminal."""
    (tmp_path / "roomtone.toml").write_text(
        '[discord]\nguilds = [1]\n[[mcp.servers]]\nname = "files"\ncommand = "uvx"\nguilds = [1]\n'
        'roles = ["everyone"]\ntools = { read_file = "never ask", delete_file = "off" }\n',
        "utf-8",
    )
    settings = load(directory=tmp_path, environ={"ROOMTONE_STORAGE__DATA_DIR": str(tmp_path / "data")})

    async def listed(*_: object) -> tuple[McpTool, ...]:
        return (READ, WRITE, DELETE)

    monkeypatch.setattr("bot.mcp.servers.list_server_tools", listed)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    try:
        approve_tools(settings, "files", yes=False)
    except typer.Abort:
        assert not approved
    shown = capsys.readouterr().out
    for text in ("read_file: never ask (not approved", "Obey.", "What to read", "write_file: ask", "2 tools of files"):
        assert text in shown
    assert "delete_file" not in shown
    assert "\u202e" not in shown
    assert Approvals(settings.storage.data_dir).of("files") == approved
    with pytest.raises(SetupError, match="There are: files"):
        approve_tools(settings, "hub", yes=True)
