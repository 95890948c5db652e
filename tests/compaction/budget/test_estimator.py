"""Token counts for one model, and a calibration from what several of the provider's bills agree on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.budget.estimator import Bill, Calibration, Estimator, Family, family_of
from compaction.tokens import estimate_text_tokens
from tests.fakes.held_objects import held_objects

BILLS = st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 60_000)), max_size=12)


class ByCharacter:
    """A tokeniser that counts each character as a token, and counts its calls."""

    def __init__(self) -> None:
        self.asked = 0

    def count(self, text: str) -> int:
        """Return the number of characters."""
        self.asked += 1
        return len(text)


def test_without_a_tokeniser_it_guesses() -> None:
    """Without a tokeniser the count is an estimate plus the overhead of each message."""
    estimator = Estimator()
    assert not estimator.exact
    assert estimator.count("We rent the cabin.") == estimate_text_tokens("We rent the cabin.")


def test_with_one_it_counts_and_counts_a_text_once() -> None:
    """A text is counted once and cached, because the turns of a window are sent again with every reply."""
    tokenizer = ByCharacter()
    estimator = Estimator(tokenizer)
    assert estimator.exact
    assert [estimator.count("seventeen") for _ in range(3)] == [9, 9, 9]
    assert tokenizer.asked == 1


def test_a_dearer_bill_raises_what_is_expected() -> None:
    """What two bills agree on raises the estimate. The surplus of small prompts is added as a fixed overhead, and the
    surplus of large prompts as a factor.
    """
    estimator = Estimator()
    assert not estimator.learn(count=100, reported=140)
    assert estimator.learn(count=100, reported=140)
    assert estimator.calibration == Calibration(1.0, 40)
    assert not estimator.learn(count=10_000, reported=12_040)
    assert estimator.learn(count=10_000, reported=12_040)
    assert estimator.calibration == Calibration(1.2, 40)
    assert not estimator.learn(count=10_000, reported=9_000)
    assert estimator.calibration.room(12_040) == 10_000


@pytest.mark.parametrize("strange", [(900, 12_000), (1_100, 12_000), (10, 10**9), (2_000, 10**9), (0, 50)])
def test_one_strange_bill_changes_nothing(strange: tuple[int, int]) -> None:
    """A single bill out of proportion corrects nothing, before, among and after ordinary ones."""
    for at in (0, 1, 5, 20):
        estimator = Estimator()
        bills = [(1_000 + 100 * number, 1_000 + 100 * number) for number in range(20)]
        bills.insert(at, strange)
        for count, reported in bills:
            estimator.learn(count=count, reported=reported)
        assert estimator.calibration.room(28_672) == 28_672


def test_a_correction_is_forgotten() -> None:
    """After a day of dear bills, two dozen ordinary ones give the prompt its whole room again."""
    estimator = Estimator()
    for _ in range(50):
        estimator.learn(count=4_000, reported=100_000)
        estimator.learn(count=400, reported=100_000)
    assert estimator.calibration == Calibration(4.0, 2_000)
    for _ in range(24):
        estimator.learn(count=4_000, reported=4_000)
    assert estimator.calibration == Calibration()


@given(BILLS, st.integers(0, 100_000), st.tuples(st.integers(1, 30_000), st.integers(0, 10**9)), st.integers(0, 24))
def test_calibration_is_that_of_the_ordinary_bills(
    bills: list[tuple[int, int]], limit: int, strange: tuple[int, int], at: int
) -> None:
    """Whatever is billed once, the calibration stays within what the other bills would give it at most. It is never
    below the count, within its bounds, and `room` is never too large.
    """
    others = [Bill(*each) for each in bills]
    known = Calibration.of([*others[:at], Bill(*strange), *others[at:]])
    # Each bill twice: what the others call for if none of them is left out.
    most = Calibration.of([*others, *others])
    assert 1.0 <= known.factor <= 4.0
    assert 0 <= known.extra_tokens <= max(0, most.extra_tokens)
    if not known.extra_tokens and not most.extra_tokens:
        assert known.factor <= most.factor
    assert known.billed(1_500) >= 1_500
    room = known.room(limit)
    assert room == 0 or known.billed(room) <= limit
    assert known.billed(room + 1) >= min(limit, known.billed(1))


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
        # Models with another vocabulary, or with none that is public.
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
    """Prefixes, paths and tags of a model's name do not matter. An unknown name has no family, because an estimate is
    safer than the vocabulary of another model.
    """
    assert family_of(model) is family


def test_it_forgets_old_texts_and_goes_on() -> None:
    """The cache of counted texts is bounded."""
    tokenizer = ByCharacter()
    estimator = Estimator(tokenizer)
    for number in range(10_000):
        estimator.count(str(number))
    assert held_objects(estimator) < 5_000
    assert estimator.count("0") == 1
