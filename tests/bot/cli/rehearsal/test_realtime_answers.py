"""The local speech-to-speech server says only what its session contains."""

from __future__ import annotations

from bot.brain.decider import Reason
from bot.brain.realtime_instructions import NOTES_HEAD, SUMMARY_HEAD
from bot.brain.skip import skip_instruction
from bot.cli.rehearsal.realtime_answers import answer_request, answer_text
from rehearsal.servers.realtime_behaviour import FunctionCall, ResponseRequest
from voice.realtime.protocol import BROKEN_OFF

NAMES = ("Roomtone",)
HEARD = (("user", "Ada speaks:"), ("user", "I bought a green bicycle at the market."))
ASKED = (("user", "Bo speaks:"), ("user", "What did Ada buy at the market?"))


def _asked(*items: tuple[str, str], instructions: str = "Be kind.") -> ResponseRequest:
    return ResponseRequest(instructions, items, (), 1)


def test_what_was_heard_in_the_session_is_known_with_its_speaker() -> None:
    """Speech heard in the session is quoted with the speaker's name that was sent before the sound."""
    assert "Ada said: I bought a green bicycle" in answer_text(_asked(*HEARD, *ASKED), names=NAMES)


def test_what_was_told_in_writing_is_known() -> None:
    """Turns that the session got as text, as a new session does, are quoted too."""
    told = ("user", "[21:04] Ada: I bought a green bicycle at the market.")
    assert "Ada said: I bought a green bicycle" in answer_text(_asked(told, *ASKED), names=NAMES)


def test_what_the_summary_holds_is_known() -> None:
    """The summary is read from the instructions, between its heading and the next section."""
    instructions = f"Be kind.\n\n{SUMMARY_HEAD}\nAda bought a green bicycle at the market.\n\nPeople here:\nAda"
    assert "green bicycle" in answer_text(_asked(*ASKED, instructions=instructions), names=NAMES)


def test_what_was_never_said_is_not_known() -> None:
    """If the session contains no answer, the server says that it heard nothing about the subject."""
    assert "nothing about that" in answer_text(_asked(*ASKED), names=NAMES)


def test_what_is_recalled_is_known() -> None:
    """Quotes from memory are read from the instructions."""
    quote = "[21:04] From memory, turn 3, Ada: I bought a green bicycle at the market."
    assert "Ada said: I bought a green bicycle" in answer_text(
        _asked(*ASKED, instructions=f"Be kind.\n\nRecalled from earlier:\n{quote}"), names=NAMES
    )


def test_memory_is_searched_once_for_what_is_not_known() -> None:
    """The memory is searched once if the session has no answer, and neither for a known answer nor for small talk."""
    tools = ("memory_search",)
    assert answer_request(ResponseRequest("", ASKED, tools, 1), names=NAMES) == FunctionCall(
        "memory_search", '{"query": "What did Ada buy at the market?"}'
    )
    told = "(turn 3.)\n[21:04] Ada: I bought a green bicycle at the market."
    found = answer_request(ResponseRequest("", (*ASKED, ("function_call_output", told)), tools, 1), names=NAMES)
    assert "Ada said: I bought a green bicycle" in str(found)
    nothing = answer_request(ResponseRequest("", (*ASKED, ("function_call_output", "Nothing.")), tools, 1), names=NAMES)
    assert "nothing about that" in str(nothing)
    assert "green bicycle" in str(answer_request(ResponseRequest("", (*HEARD, *ASKED), tools, 1), names=NAMES))
    assert (
        answer_request(ResponseRequest("", (("user", "Bo speaks:"), ("user", "Hello.")), tools, 1), names=NAMES)
        == "Hello, Bo."
    )
    assert "nothing about that" in str(answer_request(_asked(*ASKED), names=NAMES))


def test_an_answer_that_broke_off_goes_on_where_it_was() -> None:
    """After a broken connection, the new session continues an answer after the words that were heard."""
    whole = answer_text(_asked(*HEARD, *ASKED), names=NAMES)
    begun = " ".join(whole.split()[:3])
    rest = answer_text(_asked(*HEARD, *ASKED, ("assistant", begun), ("system", BROKEN_OFF)), names=NAMES)
    assert f"{begun} {rest}" == whole


def test_a_screen_is_spoken_of_and_a_silence_is_not_broken() -> None:
    """A remark about a screen uses the newest note. Without a note, and in a silence, the server skips."""
    notes = f"{NOTES_HEAD}\n[21:04] Ada: a window, just shared.\n[21:05] Ada: HP 12."
    remark = f"{skip_instruction(Reason.SCREEN)}\n\n{notes}"
    assert answer_request(_asked(*HEARD, instructions=remark), names=NAMES) == "Ada, I see HP 12."
    assert answer_request(_asked(*HEARD, instructions=skip_instruction(Reason.SCREEN)), names=NAMES) == "SKIP"
    assert answer_request(_asked(*HEARD, instructions=skip_instruction(Reason.QUIET_ROOM)), names=NAMES) == "SKIP"
