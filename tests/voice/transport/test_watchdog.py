"""Which faults count as a broken link, how often the link is repaired, and which brief faults are ignored."""

from __future__ import annotations

import itertools

from voice.transport.watchdog import (
    UNREADY_S,
    NobodyHeard,
    ReaderTaskDead,
    RecoverGroup,
    SpeakerNotHeard,
    Watchdog,
    WatchdogFinding,
)

ANA, BEN = 1, 2


def check(
    dog: Watchdog,
    now: float,
    *,
    connected: bool = True,
    runner_alive: bool = True,
    in_transition: bool = False,
    deafened: bool = False,
) -> list[WatchdogFinding]:
    return dog.check(
        now, connected=connected, runner_alive=runner_alive, in_transition=in_transition, deafened=deafened
    )


def fail(dog: Watchdog, user_id: int, times: int, *, in_group: bool = True) -> None:
    for _ in range(times):
        dog.failed(user_id, in_group=in_group)


def test_36_failures_in_a_row_recover_the_group() -> None:
    dog = Watchdog()
    fail(dog, ANA, 35)
    assert check(dog, 0.0) == []
    dog.failed(ANA, in_group=True)
    assert check(dog, 0.1) == [RecoverGroup(ANA, 36)]
    assert check(dog, 0.2) == []


def test_another_person_s_good_frames_do_not_hide_a_deaf_key() -> None:
    """Failures are counted for each person. A count over all people would be reset by each person who is heard well."""
    dog = Watchdog()
    for _ in range(36):
        dog.failed(ANA, in_group=True)
        dog.heard(BEN)
    assert check(dog, 0.0) == [RecoverGroup(ANA, 36)]


def test_failures_during_a_transition_are_not_judged() -> None:
    dog = Watchdog()
    fail(dog, ANA, 50)
    assert check(dog, 0.0, in_transition=True) == []
    assert check(dog, 1.0) == [RecoverGroup(ANA, 50)]


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


def test_the_group_is_recovered_once_for_somebody_outside_it() -> None:
    """It may have changed unnoticed. If it had, it has them afterwards, and recovering goes on as for everybody."""
    dog = Watchdog()
    fail(dog, ANA, 36, in_group=False)
    assert check(dog, 0.0) == [RecoverGroup(ANA, 36)]
    fail(dog, ANA, 500, in_group=False)
    assert check(dog, 10.0) == []
    fail(dog, ANA, 36)
    assert check(dog, 20.0) == [RecoverGroup(ANA, 36)]
    dog.heard(BEN)
    dog.left(ANA)
    fail(dog, ANA, 36, in_group=False)
    assert check(dog, 30.0) == [RecoverGroup(ANA, 36)]


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


def test_a_second_speaker_of_whom_nothing_comes_ends_in_a_new_connection() -> None:
    dog = Watchdog()
    dog.announced(ANA, 0.0)
    assert check(dog, 3.0) == [SpeakerNotHeard(ANA, 0.0)]
    dog.announced(ANA, 4.0)
    assert check(dog, 7.0) == [SpeakerNotHeard(ANA, 4.0), NobodyHeard()]
    dog.reconnected()
    for at in (8.0, 12.0):
        dog.announced(ANA, at)
        assert check(dog, at + 3.0) == [SpeakerNotHeard(ANA, at)]


def test_group_that_is_never_ready_is_made_anew() -> None:
    dog = Watchdog()
    dog.unready(ANA, 10.0)
    assert check(dog, 10.0 + UNREADY_S - 0.1) == []
    dog.unready(BEN, 12.0)
    assert check(dog, 10.0 + UNREADY_S) == [RecoverGroup(BEN, 0)]


def test_announced_and_not_heard_is_told_once() -> None:
    dog = Watchdog()
    dog.announced(ANA, 5.0)
    dog.announced(ANA, 6.0)
    dog.announced(BEN, 5.0)
    dog.heard(BEN)
    assert check(dog, 7.9) == []
    assert check(dog, 8.0) == [SpeakerNotHeard(ANA, 5.0)]
    assert check(dog, 20.0) == []


def test_nobody_is_missed_while_the_bot_is_deafened() -> None:
    """Discord announces speakers then and sends no sound of theirs. Who speaks afterwards is waited for as ever."""
    dog = Watchdog()
    for now in range(100):
        dog.announced(ANA if now % 2 else BEN, float(now))
        assert check(dog, now + 0.5, deafened=True) == []
    dog.announced(ANA, 100.0)
    assert check(dog, 102.9) == []
    assert check(dog, 103.0) == [SpeakerNotHeard(ANA, 100.0)]


def test_dead_runner_is_told_once_whatever_the_state_says() -> None:
    for connected in (True, False):
        dog = Watchdog()
        assert check(dog, 0.0, connected=connected, runner_alive=False) == [ReaderTaskDead()]
        assert check(dog, 1.0, connected=connected, runner_alive=False) == []
        assert check(dog, 2.0) == []
        assert check(dog, 3.0, connected=connected, runner_alive=False) == [ReaderTaskDead()]


def test_nothing_is_judged_while_disconnected_and_a_new_connection_starts_clean() -> None:
    dog = Watchdog()
    dog.announced(ANA, 0.0)
    fail(dog, ANA, 40)
    dog.unready(BEN, 0.0)
    assert check(dog, 30.0, connected=False) == []
    dog.reconnected()
    assert check(dog, 31.0) == []
