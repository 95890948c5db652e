"""What monitoring is answered about the health of the process."""

from __future__ import annotations

import asyncio

from bot.health import FaultKind, Health, HealthFault
from bot.monitoring.service_checks import HealthProbes
from bot.texts.text import verbatim
from tests.fakes.clock import FakeClock
from voice.errors import VoiceError

DEAF = HealthFault(FaultKind.ROOM_DEAF, "A room hears nobody.")


def probes_of(health: Health) -> HealthProbes:
    """Return the probes of `health`, without metrics."""
    return HealthProbes(health, lambda: (b"", "text/plain"))


def test_readiness_gives_each_cause_once_with_its_number() -> None:
    """Two deaf rooms are one cause. Parts with a stand-in are only noted."""
    health, found = Health(FakeClock()), [DEAF, HealthFault(FaultKind.DISK, "The disk is nearly full."), DEAF]
    health.started()
    health.add_fault_check(lambda: found)
    health.add_missing(
        verbatim("my voice"), instead=verbatim("I write"), problem=VoiceError("There is none at /opt/voice.")
    )
    ready, body = probes_of(health).readiness()
    assert not ready
    assert body == {
        "status": "not_ready",
        "causes": [
            {"cause": "room_deaf", "sentence": "A room hears nobody.", "count": 2},
            {"cause": "disk", "sentence": "The disk is nearly full.", "count": 1},
        ],
        "notes": ["1 of my parts fail and others stand in for them; /status in Discord says which."],
    }
    found.clear()
    ready, body = probes_of(health).readiness()
    assert (ready, body["status"], body["causes"]) == (True, "ready", [])


async def test_liveness_is_about_what_only_a_restart_mends() -> None:
    """A bot that cannot do its work is alive. One of whose tasks has ended is not, unless it is ending anyway, and
    neither is one with a fault that never passes.
    """
    health, found = Health(FakeClock()), [DEAF]
    health.add_fault_check(lambda: found)
    task = asyncio.create_task(asyncio.sleep(0), name="retention")
    health.started([task])
    assert probes_of(health).liveness() == (True, {"status": "alive", "causes": []})
    await task
    alive, body = probes_of(health).liveness()
    assert (alive, body["status"]) == (False, "dead")
    assert "retention" in str(body["causes"])
    found[:] = [HealthFault(FaultKind.DRAINING, "I am ending.")]
    assert probes_of(health).liveness()[0]


def test_a_fault_that_never_passes_is_told_by_liveness() -> None:
    """Only that one is among the causes, so that nobody thinks that a restart helps against the others."""
    health, found = Health(FakeClock()), [DEAF, HealthFault(FaultKind.MODELS, "It hangs.", needs_restart=True)]
    health.started()
    health.add_fault_check(lambda: found)
    alive, body = probes_of(health).liveness()
    assert (alive, body) == (False, {"status": "dead", "causes": [{"cause": "models", "sentence": "It hangs."}]})
    found.append(HealthFault(FaultKind.DRAINING, "I am ending."))
    assert probes_of(health).liveness() == (True, {"status": "alive", "causes": []})
