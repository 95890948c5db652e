"""The table of hearing and answering tells read recordings and free talk apart, each with its sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.speech_table import NOT_MEASURED, OTHERS, OURS, RECOGNISED, crowd_rows, speech_rows

if TYPE_CHECKING:
    from benchmarks.report import Json

PART: dict[str, Json] = {
    "recordings": 89,
    "words": 1660,
    "word_error_rate": 0.0669,
    "without_text": 0,
    "audio_s_mean": 6.71,
    "cpu_ms_mean": 1422.4,
}
DEFAULTS = OTHERS["faster-whisper"]


def _rows(results: dict[str, dict[str, Json]]) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(row[0], row[1]): row[2:] for row in speech_rows(results)}


def test_read_recordings_and_free_talk_stand_side_by_side() -> None:
    """Each recogniser has a row with both sets. One that a set lacks was not measured there."""
    ours: dict[str, Json] = {**PART, "dropped_by_guards": {"unsure": 2, "loop": 1}}
    free: dict[str, Json] = {**ours, "recordings": 60, "words": 700, "unlike_what_was_said": 1, "dropped_by_guards": {}}
    rows = _rows(
        {
            RECOGNISED[0]: {"ours": {"alone": ours}, "peers": {"faster-whisper": {"version": "1", "alone": PART}}},
            RECOGNISED[1]: {"ours": {"alone": free}, "peers": {}},
        }
    )
    assert rows["words misheard, alone", OURS] == ("6.7% of 1,660 words in 89", "6.7% of 700 words in 60")
    assert rows["words misheard, alone", DEFAULTS] == ("6.7% of 1,660 words in 89", NOT_MEASURED)
    assert rows["recordings without any text, alone", OURS] == ("0 of 89", "0 of 60")
    assert rows["texts dropped as unsure, alone", OURS] == ("3 in 89", "0 in 60")
    assert rows["texts unlike what was said, gibberish among them, alone", OURS] == (NOT_MEASURED, "1 of 60")
    assert rows["CPU time of a recording, alone", OURS][0] == "1,422 ms for 6.7 s, mean of 89"
    assert rows["words misheard, through Opus with 5 % of the packets lost", OURS] == (NOT_MEASURED, NOT_MEASURED)
    assert {who for _, who in rows} == {OURS, DEFAULTS}


def test_answers_and_ends_are_those_of_their_benchmarks() -> None:
    """What no run measured on free talk is said to be not measured."""
    policy: dict[str, Json] = {
        "pauses_inside": 146,
        "cut": 8,
        "cut_share": 0.0548,
        "end_known_after_ms": {"count": 178, "p50": 592.0},
    }
    answers: dict[str, Json] = {
        "recordings": 50,
        "unanswered": 0,
        "total_ms": {"count": 50, "p50": 1014.7, "p95": 1398.9},
        "heard": {
            "recordings": 50,
            "words": 940,
            "word_error_rate": 0.0702,
            "without_text": 1,
            "unlike_what_was_said": 0,
        },
    }
    rows = _rows(
        {
            RECOGNISED[0]: {},
            "endpoint.json": {"ours": {"speech": {"policy": policy}}},
            "reply.json": {"ours": {"answers": answers}},
        }
    )
    assert rows["pauses inside speech that are cut", OURS] == ("5.5%, 8 of 146 pauses, tuned on", NOT_MEASURED)
    assert rows["end of speech known after, P50, on the sound's own clock", OURS][0] == "592 ms, 178 ends, tuned on"
    assert rows["answers missing, through the local Discord's whole path", OURS] == ("0 of 50", NOT_MEASURED)
    assert rows["end of speech to first voiced sound, P50 / P95", OURS][0] == "1,015 / 1,399 ms, 50 recordings"
    path = "through Discord's whole path without loss"
    assert rows[f"words misheard, {path}", OURS] == ("7.0% of 940 words in 50", NOT_MEASURED)
    assert rows[f"recordings without any text, {path}", OURS] == ("1 of 50", NOT_MEASURED)
    assert rows[f"texts unlike what was said, gibberish among them, {path}", OURS] == ("0 of 50", NOT_MEASURED)


def test_crowds_have_what_was_lost_of_how_many() -> None:
    """A crowd that no run had is left out, and one of which nobody knows whether anything was recognised beside it.
    Without any recogniser's result there is no table of speech.
    """
    unknown: dict[str, Json] = {"core": 0.3875, "loop_lag": {"p99_ms": 4.86}, "lost": 0, "sent": 30250}
    crowd: dict[str, Json] = {
        **unknown,
        "threads": {"MainThread": 0.18},
        "recogniser": {"busy": 0.97, "texts": 41, "dropped": {"overloaded": 310}, "interim_dropped": 1205},
    }
    results: dict[str, dict[str, Json]] = {
        "receive.json": {"ours": {"whole bot": {"50 speakers": crowd, "100 speakers": unknown}}}
    }
    figures = ("39%", "18%", "4.9", "0 of 30,250", "97%", "41", "310", "1,205")
    assert list(crowd_rows(results)) == [("50 speakers", *figures)]
    assert list(speech_rows(results)) == []
