"""The costs of the last hour: older costs no longer count, summaries count, the figures add up, the limits are kept."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cost import Cost
from bot.guild import VoiceMode
from bot.llm.model_calls import CallOutcome, ModelCall
from bot.llm.settings import LlmSettings
from bot.participation.costs import HOUR_S, PRICED_TOKENS, CostLedger, ceiling_of, cost_of
from bot.participation.guild_state import GuildState
from bot.participation.settings import ParticipationSettings, ServerLimits
from bot.server_settings import no_server_settings
from compaction.errors import CompletionError
from compaction.ports import CompletionRequest
from tests.fakes.billed import BilledEndpoint
from tests.fakes.clock import FakeClock
from tests.fakes.held_objects import held_objects


def test_the_hour_slides() -> None:
    """Costs that are older than an hour do not count."""
    ledger = CostLedger(Cost(calls=2))
    ledger.add(Cost(calls=1, tokens=100), now=0.0)
    ledger.add(Cost(calls=1, tokens=50, spoken_s=3.0), now=600.0)
    assert ledger.last_hour(1_000.0) == Cost(2, 150, 3.0)
    assert ledger.is_over(1_000.0)
    assert ledger.free_in_s(1_000.0) == HOUR_S - 1_000.0
    assert not ledger.is_over(HOUR_S)
    assert ledger.last_hour(HOUR_S) == Cost(1, 50, 3.0)
    assert ledger.free_in_s(HOUR_S) == 0.0


def test_what_is_older_than_an_hour_is_not_kept() -> None:
    """Where costs are only added, too."""
    ledger, held = CostLedger(Cost()), list[int]()
    for minute in range(180):
        ledger.add(Cost(calls=1), now=minute * 60.0)
        held.append(held_objects(ledger))
    assert held[59] > held[0] + 50
    assert max(held) < held[59] + 10


def test_a_flood_of_costs_fills_no_memory() -> None:
    """All count, and those of one second are kept as one."""
    ledger = CostLedger(Cost())
    for number in range(10_000):
        ledger.add(Cost(calls=1), now=number / 1_000)
    assert ledger.last_hour(10.0) == ledger.total == Cost(calls=10_000)
    assert held_objects(ledger) < 200
    assert ledger.last_hour(HOUR_S + 5.0) == Cost(calls=4_000)


@pytest.mark.parametrize(
    ("each", "ceiling"),
    [
        (Cost(calls=1), Cost(calls=2)),
        (Cost(tokens=10), Cost(tokens=20)),
        (Cost(spoken_s=5.0), Cost(spoken_s=10.0)),
    ],
)
def test_it_may_speak_again_once_enough_is_an_hour_old(each: Cost, ceiling: Cost) -> None:
    """No sooner and no later, whichever limit was reached: of three replies, one is below the limit of two."""
    ledger = CostLedger(ceiling)
    for at in (0.0, 10.0, 20.0):
        ledger.add(each, now=at)
    assert ledger.free_in_s(30.0) == 10.0 + HOUR_S - 30.0


@pytest.mark.parametrize(
    ("ceiling", "reached"),
    [
        (Cost(), False),
        (Cost(calls=1), True),
        (Cost(calls=2), False),
        (Cost(tokens=100), True),
        (Cost(tokens=101), False),
        (Cost(spoken_s=2.5), True),
        (Cost(spoken_s=2.6), False),
    ],
)
def test_each_figure_has_a_ceiling_of_its_own(ceiling: Cost, reached: bool) -> None:
    """Calls, tokens and seconds of speech each have their own limit; 0 means no limit."""
    assert Cost(1, 100, 2.5).reaches(ceiling) is reached


def test_a_server_may_have_other_limits() -> None:
    """What is not given for it is as for all; 0 takes a limit away."""
    settings = ParticipationSettings(servers=(ServerLimits(id=7, max_calls_per_hour=10, max_tokens_per_hour=0),))
    assert ceiling_of(settings, 7) == Cost(10, 0, 1_800.0)
    assert ceiling_of(settings, 8) == Cost(240, 1_000_000, 1_800.0)


ENTRIES = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 5), st.integers(0, 500), st.integers(0, 60)), max_size=40
)


@given(ENTRIES, st.integers(1, 20))
def test_nothing_is_ever_spent_over_the_ceiling(entries: list[tuple[int, int, int, int]], most: int) -> None:
    """If the ceiling is checked before each call, no hour has more calls than allowed, and the figures add up."""
    ledger = CostLedger(Cost(calls=most))
    spent: list[tuple[float, Cost]] = []
    now = 0.0
    for wait_s, _, tokens, spoken_s in entries:
        now += wait_s
        if ledger.is_over(now):
            assert ledger.free_in_s(now) > 0
            assert not copy.deepcopy(ledger).is_over(now + ledger.free_in_s(now))
            continue
        cost = Cost(1, tokens, float(spoken_s))
        ledger.add(cost, now=now)
        spent.append((now, cost))
        last_hour = [each for at, each in spent if now - at < HOUR_S]
        assert ledger.last_hour(now) == sum(last_hour, Cost())
        assert len(last_hour) <= most


REQUEST = CompletionRequest("s" * 100, "p" * 300, max_output_tokens=50)


@pytest.mark.parametrize(
    ("outcome", "sent", "answered", "cost"),
    [
        ("answered", 1_000, 200, Cost(1, 1_200)),
        ("cancelled", 1_000, 0, Cost(1, 1_000)),
        ("failed", 1_000, 0, Cost()),
        ("failed", 1_000, 7, Cost(1, 1_007)),
    ],
)
def test_a_call_costs_what_is_billed(outcome: CallOutcome, sent: int, answered: int, cost: Cost) -> None:
    """Nobody bills a call that failed before it gave anything: a dead model silences nobody."""
    call = ModelCall("small", "reply", outcome, sent, answered, None, 1.0)
    assert cost_of(call) == cost
    price = LlmSettings.model_validate({"prices": [{"model": "small", "prompt": 0.5, "completion": 2}]}).price_of(
        "small"
    )
    dollars = (0.5 * sent + 2 * answered) / PRICED_TOKENS
    assert cost_of(call, price) == replace(cost, dollars=dollars if cost.calls else 0.0)


@pytest.mark.parametrize("ceiling", [Cost(calls=3), Cost(tokens=1_950)])
async def test_at_the_ceiling_no_call_is_made(ceiling: Cost) -> None:
    """300 folds of one hour make no more calls than its ceiling has. The refusal is retryable, and the hour ends."""
    clock, ledger, endpoint = FakeClock(), CostLedger(ceiling), BilledEndpoint()
    paid = endpoint.paid_by(GuildState(10, no_server_settings(), VoiceMode.ENGAGED, (), ledger, clock))
    for _ in range(3):
        await paid.complete(REQUEST)
    for _ in range(297):
        with pytest.raises(CompletionError, match="max_calls_per_hour") as caught:
            await paid.complete(REQUEST)
        assert caught.value.retryable
    assert endpoint.calls == 3
    clock.advance(HOUR_S)
    await paid.complete(REQUEST)
    assert endpoint.calls == 4
