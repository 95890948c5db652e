"""What the benchmark of unasked speech plays, and what it leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.listen.unasked import measure_unasked
from tests.benchmarks.no_progress import NoProgress

if TYPE_CHECKING:
    from pathlib import Path


async def test_only_talk_among_people_is_played_and_never_quoted(tmp_path: Path) -> None:
    """A monologue and a talk with an assistant are left out with a remark. The conversations may be private."""
    for name, lines in {
        "evening": [("Matt", "Thanks, Roomtone!"), ("Sam", "We leave at nine and take the bus.")],
        "alone": [("Ada", "What is the time?")],
        "assistant": [("Ada", "What is the time?"), ("assistant", "Nine."), ("Bo", "Thanks.")],
    }.items():
        text = "\n".join(
            json.dumps({"speaker": who, "text": said, "at": 6.0 * at}) for at, (who, said) in enumerate(lines)
        )
        (tmp_path / f"{name}.jsonl").write_text(text, "utf-8")
    figures, remarks = await measure_unasked(tmp_path, NoProgress())
    whole = figures["whole turns"]
    assert isinstance(whole, dict)
    assert (whole["conversations"], whole["utterances"], whole["spoken_unasked"]) == (1, 2, 1)
    assert whole["examples"] == ["evening, line 0, wake_name"]
    assert sum("Of 3 conversations, 1 have" in remark for remark in remarks) == 2
