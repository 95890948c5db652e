"""The report is readable at 80 columns and in a pipe, and no name or text breaks it."""

from __future__ import annotations

import io

from rich.console import Console

from bot import events
from rehearsal.report.terminal import TerminalReport
from tests.rehearsal.report.example import example
from tests.rehearsal.simulated import scenario


def shown(*, terminal: bool = False, encoding: str = "utf-8") -> str:
    """Return everything that is printed for a small run."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=out, width=80, force_terminal=terminal, legacy_windows=False)
    utterance = events.UtteranceTranscribed("u1", 11, "Shall we take the [bold]boat[/]? " * 4, 1.0, 2.0, 2.5)
    with TerminalReport(console) as program:
        program.opened(scenario())
        program.happened(0.0, "Mira uses /join")
        program.spoken(1.0, "Mira", "Shall we take the boat?")
        program.heard(3.0, "Mira", utterance, 512.0)
        program.heard(3.5, "Jonas the Unpronounceable", events.SpeechDropped("u2", 12, "silence", "", 1, 2, 2), 300.0)
        program.replied(65.0, events.ReplySpoken("It was Ithaca.", 3, "u1", 64.0, 65.0, True, None, None), 812.0)
        program.compacted(66.0, events.CompactionLanded(0, 10, 9, "A summary.", 12.0, 66.0))
        program.compacted(67.0, events.CompactionFailed(10, "the model did not answer", 67.0))
        program.heard(68.0, "Mira", events.UtteranceTranscribed("u3", 11, "Naïve, isn’t it…", 66.0, 67.0, 68.0), 1000.0)
        program.troubled(70.0, "step 3: the bot did not speak within 30 s")
        program.show(example())
    out.flush()
    return raw.getvalue().decode(encoding)


def test_the_conversation_fits_the_terminal_and_the_verdict_is_last() -> None:
    """No line is wider than 80 columns, and output to a pipe has no control codes. Square brackets in speech are
    printed as they are.
    """
    text = shown()
    assert "1:05 Roomtone It was Ithaca. (interrupted)" in text
    assert "[bold]boat[/]" in text
    assert "9 received" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text
    assert "\x1b" in shown(terminal=True)
    assert text.strip().splitlines()[-1] == "FAILED 0 of 1 expectations met, word error rate 20.0%"
