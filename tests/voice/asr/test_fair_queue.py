"""The order in which waiting recognitions are served."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.fair_queue import FairQueue


def _drain(queue: FairQueue[str]) -> list[str]:
    jobs = []
    while (entry := queue.next()) is not None:
        jobs.append(entry.job)
    return jobs


def _play(script: str) -> str:
    """Return what leaves the queue. A step is a sign and a request, of the speaker whose letter it begins with: `+`
    finished speech, `?` an interim, `!` the confirmation of the speaker's interim, `-` one is shed for the speaker.
    Those that were shed (`-`) or replaced (`~`) have a sign before them; at the end the others are served.
    """
    queue: FairQueue[str] = FairQueue()
    left = []
    for step in script.split():
        sign, job, speaker = step[0], step[1:], ord(step[1])
        match sign:
            case "!":
                queue.confirm(speaker)
            case "-":
                shed = queue.shed_interim(of=speaker)
                left.append("-" if shed is None else f"-{shed.job}")
            case _:
                _, replaced = queue.add(job, speaker=speaker, interim=sign == "?")
                left += [] if replaced is None else [f"~{replaced.job}"]
    return " ".join([*left, *_drain(queue)])


@pytest.mark.parametrize(
    ("script", "served"),
    [
        # Speakers are served in turn, and each speaker's requests stay in order, however many one has.
        ("+a1 +a2 +a3 +b1 +c1 +b2", "a1 b1 c1 a2 b2 a3"),
        # Interims wait behind all finished speech, even if they have waited longer.
        ("?a1 ?b1 +c1", "c1 a1 b1"),
        # A speaker's newer request, interim or final, replaces the interim that waits.
        ("?a1 ?a2 +a3", "~a1 ~a2 a3"),
        # The speaker's own interim is shed, otherwise the oldest one, and never finished speech.
        ("?a1 ?b1 +c1 -b -d -d", "-b1 -a1 - c1"),
        # A confirmed interim is served after the speaker's earlier speech, and cannot be shed.
        ("+a1 ?a2 ?b1 !a !a -a", "-b1 a1 a2"),
    ],
)
def test_the_order(script: str, served: str) -> None:
    assert _play(script) == served


def test_what_fits_is_taken_out_of_turn_and_each_speaker_stays_in_order() -> None:
    """Only the first entry of each speaker is looked at; who was served waits for the others."""
    queue: FairQueue[str] = FairQueue()
    for job, speaker in [("long a", 1), ("short a", 1), ("short b", 2), ("short b2", 2), ("short c", 3)]:
        queue.add(job, speaker=speaker, interim=False)
    queue.add("short guess", speaker=4, interim=True)

    def is_short(job: str) -> bool:
        return job.startswith("short")

    taken = [queue.next(is_short) for _ in range(4)]
    assert [entry and entry.job for entry in taken] == ["short b", "short c", "short b2", None]
    assert len(queue) == 3
    assert _drain(queue) == ["long a", "short a", "short guess"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("next"), st.just(0), st.just(False)),
        st.tuples(st.just("shed"), st.integers(0, 3), st.just(False)),
    ),
    max_size=60,
)


@given(steps)
def test_every_final_comes_out_once_in_its_speakers_order(schedule: list[tuple[str, int, bool]]) -> None:
    """After any adding, taking and shedding, all final requests come out in each speaker's order, and the length is
    right.
    """
    queue: FairQueue[tuple[int, int]] = FairQueue()
    added: list[tuple[int, int]] = []
    out: list[tuple[int, int]] = []
    inside = 0
    for number, (step, speaker, interim) in enumerate(schedule):
        if step == "add":
            _, replaced = queue.add((speaker, number), speaker=speaker, interim=interim)
            inside += 1 if replaced is None else 0
            if not interim:
                added.append((speaker, number))
        else:
            entry = queue.next() if step == "next" else queue.shed_interim(of=speaker)
            inside -= entry is not None
            if entry is not None and not entry.interim:
                assert step == "next"
                out.append(entry.job)
        assert len(queue) == inside
    while (last := queue.next()) is not None:
        if not last.interim:
            out.append(last.job)
    for speaker in range(4):
        assert [job for job in out if job[0] == speaker] == [job for job in added if job[0] == speaker]
