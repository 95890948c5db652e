"""Whether the quotes of a prompt hold the answer."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine, RecordedConversation, ReferenceQuestion
from benchmarks.memory.conversations.transcripts import plant_facts
from benchmarks.memory.measurements.prompt_quotes import quotes_in_prompts
from benchmarks.progress import NoProgress


@pytest.mark.asyncio
async def test_a_quoted_answer_counts() -> None:
    """The answer counts if its line is quoted, and a question whose answer is in the window is not asked."""
    said = {3: "My locker code is 4411.", 9: "Correction: my locker code is 7702 now.", 75: "I brought soup."}
    lines = tuple(
        ConversationLine("Ada" if at in said else "Bob", said.get(at, f"Level {at}."), 6.0 * at) for at in range(80)
    )
    questions = (
        ReferenceQuestion("What is Ada's locker code?", "7702", (9,), (3,)),
        ReferenceQuestion("Who keeps a zebra?", "Cy", (20,)),
        ReferenceQuestion("What did Ada bring?", "soup", (75,)),
    )
    figures = await quotes_in_prompts(
        [RecordedConversation("talk", "test", lines, questions=questions)], None, NoProgress()
    )
    assert (figures["questions"], figures["answered"], figures["stale_alone"]) == (2, 0.5, 0.0)
    # Nothing is folded here, so nobody knows that the new code closes the old one.
    assert (figures["corrected"], figures["stale_first"]) == (1, 1.0)


def test_facts_are_planted_into_an_episode() -> None:
    """A planted fact stands after its turn, and its correction is the evidence of its question."""
    lines = tuple(ConversationLine("Ada", f"Line {at}.", 6.0 * at) for at in range(4))
    update = {"after_turn": 2, "text": "Correction: 7702.", "answer": "7702", "stale_answer": "4411"}
    fact = {"speaker": "BOB", "after_turn": 0, "text": "The code is 4411.", "question": "The code?", "answer": "4411"}
    planted = plant_facts(RecordedConversation("one", "test", lines), [fact | {"update": update}])
    assert [line.text for line in planted.lines] == [
        "Line 0.", "The code is 4411.", "Line 1.", "Line 2.", "Correction: 7702.", "Line 3."
    ]  # fmt: skip
    assert planted.lines[1].speaker == "Bob"
    assert planted.questions == (ReferenceQuestion("The code?", "7702", (4,), (1,)),)
