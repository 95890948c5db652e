"""How many places for rooms there are, which are added and which go, and how they read."""

from __future__ import annotations

import pytest

from bot.cluster.place_actor import PlaceReport
from bot.cluster.place_folder import OfferedProcesses
from bot.cluster.places import PlaceState, names_to_add, names_to_remove
from bot.cluster.room_offer import MOST_PLACES, RoomOffer, places_count
from bot.errors import SetupError

OFFER = RoomOffer("10.0.0.1:8572", 4)


def report(process: int | None, offered: OfferedProcesses, problem: str = "") -> PlaceReport:
    """Return what a place on the machine `north` tells."""
    return PlaceReport("north", OFFER, process, offered, problem)


@pytest.mark.parametrize(
    ("there", "count", "names"),
    [
        ([], 2, ["place-1", "place-2"]),
        (["place-1"], 3, ["place-2", "place-3"]),
        (["place-2"], 2, ["place-1"]),
        (["place-1", "place-3"], 3, ["place-2"]),
        (["place-1"], 1, []),
    ],
)
def test_the_lowest_free_numbers_are_added(there: list[str], count: int, names: list[str]) -> None:
    """A place that has left makes its number free."""
    assert names_to_add(there, count) == names


def test_places_without_a_machine_go_first_and_then_the_last_ones() -> None:
    """So as few rooms as can be have to move; ten comes after nine."""
    there = [PlaceState("place-1"), *(PlaceState(f"place-{number}", "a", "10.0.0.1") for number in (2, 9, 10))]
    assert names_to_remove(there, 3) == ["place-1"]
    assert names_to_remove(there, 1) == ["place-9", "place-10", "place-1"]
    assert names_to_remove(there, 4) == []


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (
            PlaceState("place-1"),
            "place-1: waits for a machine that has as much free as it reserves",
        ),
        (PlaceState("place-1", "a", "10.0.0.2"), "place-1: on 10.0.0.2, starts"),
        (
            PlaceState("place-1", "a", "10.0.0.2", report(7, OfferedProcesses(2, 1, 1))),
            "place-1: on 10.0.0.2 (north), processes: 2 with rooms, 1 waiting, 1 being loaded",
        ),
        (
            PlaceState("place-1", "a", "10.0.0.2", report(None, OfferedProcesses(), "There is no database.")),
            "place-1: on 10.0.0.2 (north), starts. It said: There is no database.",
        ),
    ],
)
def test_a_place_reads_as_a_sentence(place: PlaceState, line: str) -> None:
    """The operator reads where it is, how many rooms it has, and what is wrong."""
    assert place.line() == line


def test_a_place_has_loaded_once_a_room_could_come() -> None:
    """A place whose every process has a room has loaded too."""
    assert not PlaceState("place-1", "a", "10.0.0.2").has_loaded
    assert not PlaceState("place-1", "a", "10.0.0.2", report(7, OfferedProcesses(loading=1))).has_loaded
    assert PlaceState("place-1", "a", "10.0.0.2", report(7, OfferedProcesses(waiting=1))).has_loaded
    assert PlaceState("place-1", "a", "10.0.0.2", report(7, OfferedProcesses(busy=4))).has_loaded


def test_an_offer_tells_what_it_needs_and_what_runs() -> None:
    """Memory for each process, and the command that a person types."""
    assert OFFER.needs == "1 CPUs, 2.4 GB"
    words = OFFER.command("place-3")
    assert words[1:5] == ["-m", "bot", "cluster", "rooms"]
    assert words[-2:] == ["--place", "place-3"]


def test_a_mistyped_number_fills_no_cluster() -> None:
    """It is refused with the bounds."""
    assert places_count(0) == 0
    with pytest.raises(SetupError, match=str(MOST_PLACES)):
        places_count(MOST_PLACES + 1)
    with pytest.raises(SetupError, match="less than nothing"):
        RoomOffer("10.0.0.1:8572", 1, cpus=-1)
