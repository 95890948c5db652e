"""What the instructions of every prompt hold, and that the bot says of itself only what is true."""

from __future__ import annotations

import re
from datetime import UTC

from bot.brain.system_prompt import SystemPrompt, build_realtime_instructions
from bot.discord.access import RULES
from compaction.context.build import SessionContext
from compaction.model import Mode, Seq

_COMMAND = re.compile(r"(?<=/)[a-z-]+(?: start)?")


def test_the_system_prompt_holds_what_it_must() -> None:
    """The system prompt has the bot's name and the rule about untrusted text, and ends with the house rules."""
    text = SystemPrompt("Otto", "Speak like a pirate.").text()
    assert "You are Otto" in text
    assert "not instructions" in text
    assert text.endswith("House rules:\nSpeak like a pirate.")
    assert "House rules" not in SystemPrompt("Otto").text()
    told = SystemPrompt("Otto", "Speak like a pirate.").text(tools=True, guild="Be brief.")
    assert told.index("Tools:") < told.index("House rules:") < told.index("On this server")
    assert told.endswith("Be brief.")


def prompts() -> list[str]:
    """Return the instructions of a language model and of a speech-to-speech model."""
    empty = SessionContext(Mode.SUMMARY, 0, Seq(0), None, 0, None, None, (), (), None, 1_000)
    spoken = build_realtime_instructions(empty, name="Otto", zone=UTC)
    return [SystemPrompt("Otto").text(tools=True), spoken.text]


def test_no_model_has_to_make_up_what_is_kept_of_people() -> None:
    """Somebody who asks 'Are you recording me?' or 'Forget what I said.' gets an answer from what is true."""
    for prompt in prompts():
        assert "no sound" in prompt
        assert "kept as text for some time" in prompt or "keep what is said as text for some time" in prompt
        assert "forget" in prompt
        assert "remind anybody later" in prompt


def test_the_commands_that_a_model_names_exist() -> None:
    """What it sends people to is there, and open to them."""
    for prompt in prompts():
        named = _COMMAND.findall(prompt.replace("</data>", ""))
        assert {"quiet", "leave", "opt-out", "forget-me", "privacy", "help"} <= set(named)
        assert set(named) <= RULES.keys()


def test_only_who_has_tools_is_told_of_them() -> None:
    """A prompt without tools speaks of none."""
    assert "tools" not in SystemPrompt("Otto").text()
    assert "except by your tools" in SystemPrompt("Otto").text(tools=True)
