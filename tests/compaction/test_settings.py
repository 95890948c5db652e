"""The defaults are consistent, and settings that cannot work are refused with a clear sentence."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from compaction.settings import BudgetSettings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (BudgetSettings(), 32_768 - 4_096),
        (BudgetSettings(max_context_tokens=8_192), 8_192 - 2_048),
        (BudgetSettings(max_context_tokens=128_000), 128_000 - 4_096),
        (BudgetSettings(max_context_tokens=8_192, reserved_output_tokens=1_000), 7_192),
    ],
)
def test_room_for_the_question(settings: BudgetSettings, expected: int) -> None:
    """The input limit is the context of the model minus the reserve for the answer, which is 4,096 tokens, a quarter of
    the context, or the setting.
    """
    assert settings.max_input_tokens == expected


def test_no_room_for_the_question_is_refused() -> None:
    """A reserve for the answer that leaves almost nothing to send is refused."""
    with pytest.raises(ValidationError, match="512"):
        BudgetSettings(max_context_tokens=4_096, reserved_output_tokens=4_000)
