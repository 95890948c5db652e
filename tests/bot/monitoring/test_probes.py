"""What monitoring is answered about the health of the process."""

from __future__ import annotations

from dataclasses import replace

from bot.health import Actor, FaultKind, Health, HealthFault
from bot.monitoring.metrics import Metrics
from bot.monitoring.service_checks import HealthProbes
from bot.texts.text import OperatorText, Text
from tests.fakes.clock import FakeClock

DEAF = HealthFault(FaultKind.ROOM_DEAF, Text("I hear nobody."), acts=Actor.NOBODY)


def probes_of(*found: HealthFault) -> HealthProbes:
    """Return the probes of a process in which this is wrong, without metrics."""
    health = Health(FakeClock())
    health.started()
    health.add_check(lambda: found)
    return HealthProbes(health, Metrics(health))


def test_readiness_gives_each_cause_once_with_its_number() -> None:
    """Two deaf rooms are one cause, since the first of them is. What something stands in for is only noted. Nobody
    reads an address.
    """
    now = FakeClock().monotonic()
    stands_in = HealthFault(
        FaultKind.VOICE,
        Text("My voice does not work; I write."),
        OperatorText("There is none at /opt/voice.", Text("There is none.")),
        since=now - 60.0,
        blocks=False,
    )
    deaf = (replace(DEAF, since=now - 5.0), replace(DEAF, since=now - 9.0))
    ready, body = probes_of(*deaf, stands_in).readiness()
    assert not ready
    assert body == {
        "status": "not_ready",
        "causes": [
            {
                "cause": "room_deaf",
                "sentence": "I hear nobody.",
                "acts": "nobody",
                "remedy": "",
                "since_s": 9,
                "count": 2,
            }
        ],
        "notes": [
            {
                "cause": "voice",
                "sentence": "My voice does not work; I write.",
                "acts": "operator",
                "remedy": "There is none.",
                "since_s": 60,
                "count": 1,
            }
        ],
    }
    assert probes_of(stands_in).readiness()[0]
    assert probes_of().readiness() == (True, {"status": "ready", "causes": [], "notes": []})


def test_liveness_is_about_what_only_a_restart_mends() -> None:
    """A bot that cannot do its work is alive. One with a fault that never passes is not, unless it is ending anyway;
    only that one is among the causes, so that nobody thinks that a restart helps against the others.
    """
    hangs = HealthFault(FaultKind.MODELS, Text("It hangs."), needs_restart=True)
    assert probes_of(DEAF).liveness() == (True, {"status": "alive", "causes": []})
    alive, body = probes_of(DEAF, hangs).liveness()
    assert (alive, body["status"]) == (False, "dead")
    assert "hangs" in str(body["causes"])
    assert "hear" not in str(body["causes"])
    assert probes_of(hangs, HealthFault(FaultKind.DRAINING, Text("I am ending."))).liveness()[0]
