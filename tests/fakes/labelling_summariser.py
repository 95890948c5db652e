"""A summariser that labels what people say of themselves, as a model does, by a sign that tests put into the words."""

from __future__ import annotations

from dataclasses import replace

from compaction.model import Fact, FactKind
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest

# A turn with this is a lasting fact of its speaker.
OWN = ("I live", "I'm ", "My ")


class LabellingSummariser(ExtractiveSummariser):
    """Adds a lasting fact for each turn that begins with one of `OWN`; it closes the speaker's earlier facts."""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of the batch, under the version of a prompt."""
        made = await super().fold(request)
        facts: list[Fact] = []
        for turn in request.turns:
            for part in turn.parts:
                if part.text.startswith(OWN):
                    begins = part.text.split()[:2]
                    closes = tuple(
                        each.ref
                        for each in request.known
                        if each.fact.owner == part.speaker and each.fact.text.split()[:2] == begins
                    )
                    facts.append(
                        Fact(
                            turns=(turn.seq,),
                            text=part.text,
                            kind=FactKind.LASTING,
                            closes=closes,
                            speaker=part.speaker,
                            at=turn.started_at,
                            owner=part.speaker,
                        )
                    )
        return replace(made, facts=(*facts, *made.facts), prompt_version="labelling.v1")
