"""Keepalives leave on time, their echoes are measured, and only silence after an echo is a dead path."""

from __future__ import annotations

from voice.transport.keepalive import KEEPALIVE_BYTES, KEEPALIVE_EVERY_S, Keepalive


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
        """Let time pass until `until`, in steps of half a second, as the link's task does."""
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


def test_an_echo_among_sound_is_measured() -> None:
    path = Path(audio=True)
    path.run(20.0)
    assert path.keepalive.round_trip_s is not None


def test_a_probe_is_sent_at_once() -> None:
    path = Path()
    path.run(6.5)
    path.keepalive.probe()
    path.run(7.0)
    assert path.sent_at == [0.0, 5.0, 6.5]
