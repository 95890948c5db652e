"""Situations: what a model is shown before it answers a question. `talks` has the talks, `folds` those of long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.written.situation_player import play_situation
from rehearsal.script.situation import SituationFile

TALKS = sorted((Path(__file__).parent / "talks").glob("*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.stem)
def test_the_model_is_shown_what_it_needs(talk: Path) -> None:
    """Each row of `shown` in its order, and nothing of `absent`."""
    file = SituationFile(talk)
    (played,) = run_virtually(play_situation(file))
    assert played.failed == ()
    shown = "\n".join(f"{each.role.value}: {each.content}" for each in played.first.messages)
    assert file.situation.shown
    for row in file.situation.shown:
        at = 0
        for text in row:
            assert text in shown[at:]
            at = shown.index(text, at) + len(text)
    assert [text for text in file.situation.absent if text in shown] == []
