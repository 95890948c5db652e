"""Which vocabulary a model's name leads to."""

from __future__ import annotations

import pytest

from compaction.budget.families import Family, family_of


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4.1-mini", Family.O200K),
        ("gpt-4o", Family.O200K),
        ("openai/gpt-5-nano", Family.O200K),
        ("gpt-oss:20b", Family.O200K),
        ("o3-mini", Family.O200K),
        ("o1", Family.O200K),
        ("ft:gpt-4o-mini:us", Family.O200K),
        ("gpt-4", Family.CL100K),
        ("gpt-4-turbo", Family.CL100K),
        ("gpt-3.5-turbo-0125", Family.CL100K),
        ("qwen2.5:7b", Family.QWEN),
        ("Qwen/Qwen3-8B", Family.QWEN),
        ("/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", Family.QWEN),
        ("C:\\models\\Qwen-7B-Chat.gguf", Family.QWEN),
        ("qwen", Family.QWEN),
        # Another vocabulary, or none that is public.
        ("qwen3.5-9b", None),
        ("qwen4-1b", None),
        ("claude-sonnet-4-5", None),
        ("gemma3:4b", None),
        ("o2-something", None),
        ("gpt-44", None),
        ("my-gpt-4o", None),
        ("", None),
    ],
)
def test_a_name_leads_to_its_family(model: str, family: Family | None) -> None:
    """Prefixes, paths and tags don't matter; an unknown name has no family, because a guess is safer than another's
    vocabulary."""
    assert family_of(model) is family
