"""What is noticed of a broken connection, how often it is repaired, and which brief faults and silent servers are
ignored.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import pytest

from voice.transport.keepalive import KEEPALIVE_BYTES, KEEPALIVE_EVERY_S, Keepalive
from voice.transport.watchdog import (
    UNREADY_S,
    NobodyHeard,
    RecoverGroup,
    SpeakerNotHeard,
    Watchdog,
    WatchdogFinding,
)

ANA, BEN = 1, 2
Step: TypeAlias = Callable[[Watchdog], object]


def check(
    dog: Watchdog,
    now: float,
    *,
    connected: bool = True,
    in_transition: bool = False,
    deafened: bool = False,
) -> list[WatchdogFinding]:
    return dog.check(now, connected=connected, ready=False, in_transition=in_transition, deafened=deafened)


def fail(dog: Watchdog, user_id: int, times: int, *, in_group: bool = True) -> None:
    for _ in range(times):
        dog.failed(user_id, in_group=in_group)


def did(what: str, *args: object, times: int = 1, **how: bool) -> Step:
    """Let the watchdog be told of something."""
    return lambda dog: [getattr(dog, what)(*args, **how) for _ in range(times)]


def failed(times: int, *, in_group: bool = True) -> Step:
    return did("failed", ANA, times=times, in_group=in_group)


def found(now: float, *findings: WatchdogFinding, **state: bool) -> Step:
    """Let it check, and expect these findings."""

    def step(dog: Watchdog) -> None:
        assert check(dog, now, **state) == list(findings)

    return step


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [failed(35), found(0.0), failed(1), found(0.1, RecoverGroup(ANA, 36)), found(0.2)],
            id="36 failures in a row recover the group",
        ),
        pytest.param(
            [*[failed(1), did("heard", BEN)] * 36, found(0.0, RecoverGroup(ANA, 36))],
            id="another person's good frames do not hide a deaf key",
        ),
        pytest.param(
            [failed(50), found(0.0, in_transition=True), found(1.0, RecoverGroup(ANA, 50))],
            id="failures during a transition are not judged",
        ),
        pytest.param(
            [
                failed(36, in_group=False),
                found(0.0, RecoverGroup(ANA, 36)),
                failed(500, in_group=False),
                found(10.0),
                # It has them now, and recovering goes on as for everybody.
                failed(36),
                found(20.0, RecoverGroup(ANA, 36)),
                did("heard", BEN),
                did("left", ANA),
                failed(36, in_group=False),
                found(30.0, RecoverGroup(ANA, 36)),
            ],
            id="the group is recovered once for somebody outside it",
        ),
        pytest.param(
            [
                did("announced", ANA, 0.0),
                found(3.0, SpeakerNotHeard(ANA)),
                did("announced", ANA, 4.0),
                found(7.0, SpeakerNotHeard(ANA), NobodyHeard()),
                did("reconnected"),
                did("announced", ANA, 8.0),
                found(11.0, SpeakerNotHeard(ANA)),
                did("announced", ANA, 12.0),
                found(15.0, SpeakerNotHeard(ANA)),
            ],
            id="a second speaker of whom nothing comes ends in a new connection, and the next one is no reason",
        ),
        pytest.param(
            [
                did("unready", ANA, 10.0),
                found(10.0 + UNREADY_S - 0.1),
                did("unready", BEN, 12.0),
                found(10.0 + UNREADY_S, RecoverGroup(BEN, 0)),
            ],
            id="a group that is never ready is made anew",
        ),
        pytest.param(
            [
                did("announced", ANA, 5.0),
                did("announced", ANA, 6.0),
                did("announced", BEN, 5.0),
                did("heard", BEN),
                found(7.9),
                found(8.0, SpeakerNotHeard(ANA)),
                found(20.0),
            ],
            id="who is announced and not heard is told once",
        ),
        pytest.param(
            [
                *(
                    step
                    for now in range(100)
                    for step in (
                        did("announced", ANA if now % 2 else BEN, float(now)),
                        found(now + 0.5, deafened=True),
                    )
                ),
                did("announced", ANA, 100.0),
                found(102.9),
                found(103.0, SpeakerNotHeard(ANA)),
            ],
            id="nobody is missed while the bot is deafened, for Discord sends no sound then",
        ),
        pytest.param(
            [
                did("announced", ANA, 0.0),
                failed(40),
                did("unready", BEN, 0.0),
                found(30.0, connected=False),
                did("reconnected"),
                found(31.0),
            ],
            id="nothing is judged while disconnected, and a new connection starts clean",
        ),
    ],
)
def test_what_is_found(steps: list[Step]) -> None:
    dog = Watchdog()
    for step in steps:
        step(dog)


def test_recoveries_grow_rarer_and_recover_themselves() -> None:
    """Recoveries of one person who is never heard, while others are, come after 3, 3, 6, 12, 24, 48 and 60 s."""
    dog = Watchdog()
    at: list[float] = []
    for step in range(3000):
        now = step * 0.1
        dog.heard(BEN)
        fail(dog, ANA, 40)
        found = check(dog, now)
        assert NobodyHeard() not in found
        if found:
            at.append(now)
    gaps = [round(later - earlier) for earlier, later in itertools.pairwise(at)]
    assert gaps[:7] == [3, 3, 6, 12, 24, 48, 60]
    assert set(gaps[7:]) <= {60}
    dog.heard(ANA)
    check(dog, 1000.0)
    fail(dog, ANA, 40)
    assert check(dog, 1001.0)
    fail(dog, ANA, 40)
    assert check(dog, 1003.9) == []
    assert check(dog, 1004.1)


def test_two_vain_recoveries_end_in_a_new_connection() -> None:
    """A bot that is in no group tries to join it twice; ten seconds after the first frame it makes a new connection.
    New connections that do not help grow rarer.
    """
    dog = Watchdog()
    recovered: list[float] = []
    replaced: list[float] = []
    for step in range(6000):
        now = step * 0.5
        dog.unready(ANA, now)
        for finding in check(dog, now):
            if finding == NobodyHeard():
                replaced.append(now)
                dog.reconnected()
            else:
                recovered.append(now)
    assert len([at for at in recovered if at < replaced[0]]) == 2
    assert replaced[0] <= 10.0
    gaps = [later - earlier for earlier, later in itertools.pairwise(replaced)]
    assert gaps[0] >= 60.0
    assert gaps == sorted(gaps)
    assert max(gaps) <= 600 + 60


class Path:
    """A path to a voice server. `answers`: whether it sends keepalives back; `audio`: whether other datagrams come."""

    def __init__(self, *, answers: bool = True, audio: bool = False) -> None:
        self.keepalive = Keepalive()
        self.answers = answers
        self.audio = audio
        self.now = 0.0
        self.received = 0
        self.sent_at: list[float] = []
        self.dead_at: float | None = None

    def run(self, until: float) -> None:
        """Let time pass until `until`, in steps of half a second, as the connection's task does."""
        while self.now < until:
            self.received += self.audio
            datagram = self.keepalive.due(self.now, received=self.received)
            if datagram is not None:
                assert len(datagram) == KEEPALIVE_BYTES
                self.sent_at.append(self.now)
                if self.answers:
                    self.received += self.audio
                    self.keepalive.due(self.now, received=self.received)
                    assert self.keepalive.echoed(datagram, self.now + 0.04)
            if self.dead_at is None and self.keepalive.dead(self.now):
                self.dead_at = self.now
            self.now += 0.5


def test_one_keepalive_leaves_at_once_and_then_every_five_seconds() -> None:
    path = Path()
    path.run(31.0)
    assert path.sent_at == [KEEPALIVE_EVERY_S * count for count in range(7)]
    assert path.keepalive.round_trip_s is not None
    assert round(path.keepalive.round_trip_s, 3) == 0.04
    assert path.dead_at is None


def test_a_server_that_never_answers_is_no_dead_path() -> None:
    """Some of Discord's servers send no keepalive back. Libraries that took that for a failure cut every call."""
    path = Path(answers=False)
    path.run(600.0)
    assert path.dead_at is None
    assert path.keepalive.round_trip_s is None
    assert len(path.sent_at) == 600 / KEEPALIVE_EVERY_S


def test_a_server_that_stops_answering_is_noticed_within_ten_seconds() -> None:
    path = Path()
    path.run(30.5)
    path.answers = False
    path.run(60.0)
    assert path.dead_at is not None
    assert 5.0 < path.dead_at - 30.5 <= 10.0


def test_a_probe_is_sent_at_once() -> None:
    path = Path()
    path.run(6.5)
    path.keepalive.probe()
    path.run(7.0)
    assert path.sent_at == [0.0, 5.0, 6.5]
