"""The order in which waiting recognitions are served."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.asr.fair_queue import FairQueue


def _drain(queue: FairQueue[str]) -> list[str]:
    jobs = []
    while (entry := queue.next()) is not None:
        jobs.append(entry.job)
    return jobs


def test_speakers_take_turns() -> None:
    """Speakers are served in turn, and each speaker's requests stay in order, however many one speaker has."""
    queue: FairQueue[str] = FairQueue()
    for job, speaker in [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2), ("c1", 3), ("b2", 2)]:
        queue.add(job, speaker=speaker, interim=False)
    assert _drain(queue) == ["a1", "b1", "c1", "a2", "b2", "a3"]


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


def test_guesses_wait_behind_finished_speech() -> None:
    """Interim requests are served after all final ones, even if they have waited longer."""
    queue: FairQueue[str] = FairQueue()
    queue.add("guess of 1", speaker=1, interim=True)
    queue.add("guess of 2", speaker=2, interim=True)
    queue.add("final of 3", speaker=3, interim=False)
    assert _drain(queue) == ["final of 3", "guess of 1", "guess of 2"]


def test_only_the_latest_guess_of_a_speaker_is_kept() -> None:
    """A speaker's newer request, interim or final, replaces the speaker's waiting interim request."""
    queue: FairQueue[str] = FairQueue()
    old, _ = queue.add("old", speaker=1, interim=True)
    new, replaced = queue.add("new", speaker=1, interim=True)
    assert replaced is old
    _, replaced = queue.add("final", speaker=1, interim=False)
    assert replaced is new
    assert len(queue) == 1


def test_shedding_takes_the_oldest_guess() -> None:
    """Shedding removes the given speaker's own interim request, otherwise the oldest one, and never a final request."""
    queue: FairQueue[str] = FairQueue()
    first, _ = queue.add("first", speaker=1, interim=True)
    own, _ = queue.add("own", speaker=2, interim=True)
    queue.add("final", speaker=3, interim=False)
    assert queue.shed_interim(of=2) is own
    assert queue.shed_interim(of=4) is first
    assert queue.shed_interim(of=4) is None
    assert _drain(queue) == ["final"]


def test_a_confirmed_guess_takes_its_place_among_finished_speech() -> None:
    """A confirmed interim request is served after the speaker's earlier final requests and cannot be shed. Confirming
    it again does nothing.
    """
    queue: FairQueue[str] = FairQueue()
    queue.add("final of 1", speaker=1, interim=False)
    guess, _ = queue.add("guess of 1", speaker=1, interim=True)
    queue.add("guess of 2", speaker=2, interim=True)
    assert queue.confirm(1)
    assert not queue.confirm(1)
    shed = queue.shed_interim(of=1)
    assert shed is not None
    assert shed.job == "guess of 2"
    assert _drain(queue) == ["final of 1", "guess of 1"]
    assert not queue.remove(guess)


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
