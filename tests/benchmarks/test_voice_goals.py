"""The table of what hearing and answering should reach names targets that benchmarks have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.asr.bench import asr_targets
from benchmarks.document import BEGIN, END, update_page
from benchmarks.endpoint.bench import endpoint_targets
from benchmarks.receive.targets import receive_targets
from benchmarks.reply.targets import reply_targets
from benchmarks.unasked.bench import unasked_targets
from benchmarks.voice_goals import BESIDE, TUNED_ON, VOICE_GOALS, voice_goals

if TYPE_CHECKING:
    from benchmarks.report import Json


def test_every_goal_is_a_target_of_its_benchmark() -> None:
    """A target that is renamed cannot leave the table unseen."""
    targets = {
        "asr.json": asr_targets({}, {}),
        "asr-free-talk.json": asr_targets({}, {}),
        "endpoint.json": endpoint_targets({}),
        "receive.json": receive_targets({}),
        "reply.json": reply_targets({}),
        "unasked.json": unasked_targets({}),
    }
    names = {(file, target.name) for file, of_one in targets.items() for target in of_one}
    assert set(VOICE_GOALS) <= names
    assert names >= TUNED_ON
    assert {*BESIDE, *BESIDE.values()} <= names


def test_a_goal_that_was_kept_is_in_the_table() -> None:
    """The page begins with the goals that a kept result has, in their order, and with no table without any."""
    known: dict[str, Json] = {
        "name": "end of speech known after, P50 ms",
        "goal": "<= 600 ms",
        "value": 604.0,
        "met": False,
    }
    cut: dict[str, Json] = {
        "name": "pauses inside speech that are cut",
        "goal": "<= 6 %",
        "value": 0.05,
        "met": True,
        "sample": "100",
    }
    results: dict[str, dict[str, Json]] = {"reply.json": {"targets": [known, cut, {**known, "name": "other"}]}}
    assert [target["name"] for _, target in voice_goals(results)] == [cut["name"], known["name"]]
    page = update_page(f"{BEGIN}\n{END}", results)
    assert page.index("### Hearing and answering") < page.index("### reply.json")
    assert "| end of speech known after, P50 ms | <= 600 ms | 604 | **not met** | tuned on | `reply` |" in page
    assert "### Hearing" not in update_page(f"{BEGIN}\n{END}", {"leaks.json": {"targets": [known]}})


def test_what_was_kept_apart_stands_beside_what_was_tuned_on() -> None:
    """Figures of the recordings that the policy was fitted on say so, and the next row is what was kept apart."""
    cut: dict[str, Json] = {
        "name": "pauses inside speech that are cut",
        "goal": "<= 6 %",
        "value": 0.05,
        "met": True,
        "sample": "8 of 146 pauses",
    }
    apart: dict[str, Json] = {
        "name": "pauses inside free talk kept apart that are cut",
        "goal": "<= 6 %",
        "value": 0.13,
        "met": False,
        "sample": "10 of 77 pauses",
    }
    results: dict[str, dict[str, Json]] = {
        "endpoint.json": {"targets": [cut, apart]},
        "reply.json": {"targets": [cut]},
    }
    lines = update_page(f"{BEGIN}\n{END}", results).splitlines()
    tuned = "| pauses inside speech that are cut | <= 6 % | 0.05 | met | 8 of 146 pauses, tuned on |"
    beside = "| pauses inside free talk kept apart that are cut{} | <= 6 % | 0.13 | **not met** | 10 of 77 pauses |"
    in_endpoint, in_reply = (at for at, line in enumerate(lines) if line == tuned)
    assert lines[in_endpoint + 1] == beside.format("")
    assert lines[in_reply + 1] == beside.format(" (`endpoint`)")
