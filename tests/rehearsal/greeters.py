"""The bot and the test of docs/rehearsal.md, and the same bot in other libraries (examples)."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sources import ROOT


def write_greeter(folder: Path, *, library: str = "") -> None:
    """Write the bot, its `conftest.py` and its test into `folder`. `library`: an example's, by default the page's."""
    page = (ROOT / "docs" / "rehearsal.md").read_text("utf-8")
    bot, conftest, test = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    if library:
        bot = (ROOT / "examples" / f"greeter_{library}.py").read_text("utf-8")
    if library == "disnake":
        test = test.replace("import discord", "import disnake").replace("discord.Intents", "disnake.Intents")
    for name, code in (("greeter.py", bot), ("conftest.py", conftest), ("test_greeter.py", test)):
        (folder / name).write_text(code, "utf-8")
