"""Words the prompt that has the summary so far and a batch retold as one paragraph.

The text is a file under `prompts/`; turns and notes are written as in `prompt`. It asks for fewer characters than
may be injected, because models overshoot, and caps the answer's tokens below that budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.ports import CompletionRequest
from compaction.summary.fold_prompt import notes_text, turn_lines
from compaction.summary.prompt_texts import RECURSIVE_VERSION, PromptTexts

if TYPE_CHECKING:
    from compaction.summary.port import FoldRequest

# What a paragraph is asked to keep to, of the 1,200 characters that are allowed.
ASKED_CHARS = 1_000
# Below 1,200 characters: English has some 4.4 characters a token.
CAP_TOKENS = 270


class RetellingPrompts:
    """The prompt of the recursive strategy. `version` tells which texts it is made of."""

    def __init__(self, texts: PromptTexts) -> None:
        self._system, self._user = texts.halves(RECURSIVE_VERSION)
        self.version = texts.version(RECURSIVE_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what stands above the sections, and never belongs into an answer."""
        return self._user.labels

    def write(self, fold: FoldRequest, *, max_output_tokens: int, correction: str = "") -> CompletionRequest:
        """Return the request for one paragraph. `correction` says what was wrong with the last one."""
        turns = "\n".join(turn_lines(fold.turns))
        return CompletionRequest(
            system=self._system.substitute(summary_chars=ASKED_CHARS),
            prompt=self._user.told(
                {
                    "previous": fold.previous or "",
                    "notes": notes_text(fold.notes),
                    "turns": turns,
                    "correction": correction,
                    "summary_chars": ASKED_CHARS,
                }
            ),
            max_output_tokens=min(max_output_tokens, _cap_tokens(f"{fold.previous or ''} {turns}")),
        )


def _cap_tokens(text: str) -> int:
    """Return the cap for an answer in the writing of this text: other alphabets have fewer characters a token, about
    as many as they have bytes a character."""
    return round(CAP_TOKENS * len(text.encode(errors="replace")) / max(1, len(text)))
