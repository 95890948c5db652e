"""Writes the prompts that fold a batch: for a gist and facts (ledger) or for one paragraph (recursive).

The texts are files under `prompts/` (`prompt_texts`). Both prompts contain the previous summary, the condensed notes,
and the uncut turns with number, time and speakers. The ledger prompt also lists known facts with numbers, so that a
correction can name the fact it replaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from compaction.language.wording import concepts, plain
from compaction.model import FactKind
from compaction.notes import condense_notes
from compaction.ports import CompletionRequest
from compaction.summary.port import MAX_FACT_CHARS, MAX_GIST_CHARS
from compaction.summary.prompt_texts import LEDGER_VERSION, RECURSIVE_VERSION, PromptTexts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Note, Turn
    from compaction.summary.port import FoldRequest, KnownFact

# The most facts to ask for. With more, a small model confuses them.
MODEL_FACTS = 8
# The most known facts that the prompt lists for correction.
_OFFERED = 12
# The prompt asks for less than the allowed 1,200 characters, because models write more than asked.
REQUESTED_CHARS = 1_000
# The token limit for a paragraph. It gives less than 1,200 characters: English has about 4.4 characters per token.
PARAGRAPH_TOKENS = 270


@dataclass(frozen=True, slots=True)
class LedgerPrompt:
    """A request to the model and the known facts that the request lists. Number n in the prompt is `offered[n - 1]`."""

    request: CompletionRequest
    offered: tuple[KnownFact, ...]


class LedgerPrompts:
    """Writes the prompts of the ledger strategy. `version` identifies the prompt texts."""

    def __init__(self, texts: PromptTexts) -> None:
        self._system, self._user = texts.halves(LEDGER_VERSION)
        self._json = texts.whole(f"{LEDGER_VERSION}.json.txt")
        self._lines = texts.whole(f"{LEDGER_VERSION}.lines.txt")
        self.version = texts.version(LEDGER_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the section headings, which must not appear in an answer."""
        return self._user.labels

    def write(self, fold: FoldRequest, *, structured: bool, max_output_tokens: int) -> LedgerPrompt:
        """Return the request for one batch. `structured`: ask for JSON, otherwise for plain lines."""
        offered = _offered(fold)
        limits = {"gist_chars": MAX_GIST_CHARS, "fact_chars": MAX_FACT_CHARS // 2, "max_facts": MODEL_FACTS}
        output = (self._json if structured else self._lines).substitute(limits)
        numbered = [
            f"({number}) {plain(each.claim.fact.attributed_text)}" for number, each in enumerate(offered, start=1)
        ]
        prompt = self._user.fill(
            {
                "previous": fold.previous or "",
                "known": "\n".join(numbered),
                "notes": format_notes(fold.notes),
                "turns": "\n".join(format_turns(fold.turns)),
            }
        )
        return LedgerPrompt(
            CompletionRequest(
                system=self._system.substitute(output=output),
                prompt=prompt,
                max_output_tokens=max_output_tokens,
                schema=ledger_schema(fold.turns, len(offered)) if structured else None,
            ),
            offered,
        )


class RecursivePrompts:
    """Writes the prompts of the recursive strategy. `version` identifies the prompt texts."""

    def __init__(self, texts: PromptTexts) -> None:
        self._system, self._user = texts.halves(RECURSIVE_VERSION)
        self.version = texts.version(RECURSIVE_VERSION)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the section headings, which must not appear in an answer."""
        return self._user.labels

    def write(self, fold: FoldRequest, *, max_output_tokens: int, correction: str = "") -> CompletionRequest:
        """Return the request for one paragraph. `correction`: what was wrong with the previous attempt."""
        turns = "\n".join(format_turns(fold.turns))
        return CompletionRequest(
            system=self._system.substitute(summary_chars=REQUESTED_CHARS),
            prompt=self._user.fill(
                {
                    "previous": fold.previous or "",
                    "notes": format_notes(fold.notes),
                    "turns": turns,
                    "correction": correction,
                    "summary_chars": REQUESTED_CHARS,
                }
            ),
            max_output_tokens=min(max_output_tokens, _cap_tokens(f"{fold.previous or ''} {turns}")),
        )


def format_turns(turns: Sequence[Turn]) -> list[str]:
    """Return one line per turn, uncut: `[12] 21:04 Ada: … / Bob: …`. Forgotten turns have no line."""
    return [
        f"[{turn.seq}] {_clock(turn.started_at)} "
        + " / ".join(f"{plain(part.speaker)}: {plain(part.text)}" for part in turn.parts)
        for turn in turns
        if turn.parts
    ]


def format_notes(notes: Sequence[Note]) -> str:
    """Return screen notes as a text of at most 400 characters, with time and owner of each screen."""
    return "; ".join(
        f"{_clock(note.at)} {plain(note.who)}'s screen: {plain(note.what)}" for note in condense_notes(notes)
    )


def ledger_schema(turns: Sequence[Turn], offered: int) -> dict[str, object]:
    """Return the JSON schema of an answer. The answer may cite only these turns and supersede only the
    offered facts.
    """
    fact: dict[str, object] = {
        "type": "object",
        "properties": {
            "turn_seq": {"type": "integer", "enum": [turn.seq for turn in turns]},
            "kind": {"type": "string", "enum": [kind.value for kind in FactKind]},
            "text": {"type": "string", "maxLength": MAX_FACT_CHARS},
            "supersedes": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": max(1, offered)},
                "maxItems": 3,
            },
        },
        "required": ["turn_seq", "kind", "text"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "gist": {"type": "string", "maxLength": MAX_GIST_CHARS},
            "facts": {"type": "array", "items": fact, "maxItems": MODEL_FACTS if turns else 0},
        },
        "required": ["gist", "facts"],
        "additionalProperties": False,
    }


def _offered(fold: FoldRequest) -> tuple[KnownFact, ...]:
    """Return the known facts that share most concepts with the batch, because the batch may correct them."""
    said = concepts(" ".join(part.text for turn in fold.turns for part in turn.parts)).all
    shared = [(len(each.claim.about.all & said), index, each) for index, each in enumerate(fold.known)]
    best = sorted((entry for entry in shared if entry[0] >= 2), key=lambda entry: (-entry[0], -entry[1]))[:_OFFERED]
    return tuple(each for _, _, each in sorted(best, key=lambda entry: entry[1]))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def _cap_tokens(text: str) -> int:
    """Return the token limit for an answer in the script of this text.

    Non-Latin scripts have fewer characters per token, roughly in proportion to their UTF-8 bytes per character.
    """
    return round(PARAGRAPH_TOKENS * len(text.encode(errors="replace")) / max(1, len(text)))
