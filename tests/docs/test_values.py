"""Numbers on the pages are those of the code: defaults of settings that are named beside them, and times and limits."""

from __future__ import annotations

import re

import pytest

from bot import reminders
from bot.brain import replier, system_prompt
from bot.brain.context import QUOTE_TOKENS
from bot.brain.tools import built_in, frozen_calls
from bot.brain.tools import tool as tool_schema
from bot.conversation import speaking, voice_messages
from bot.discord import client as discord_client
from bot.health import Actor
from bot.llm import fallback
from bot.llm.settings import USUAL_LIMITS
from bot.mcp import connection, message_limit, tools
from bot.memory import people, transcript_files
from bot.models import directory
from bot.monitoring import overload, service_checks, watchdog
from bot.posts import live_message, renewal
from bot.realtime.items import MAX_INPUT_TOKENS
from bot.room import membership, room_faults, watches
from bot.screen import commentary, screens
from bot.settings import RESUME_WITHIN_S
from bot.web import connection as web_connection
from bot.web import login_routes
from bot.wiring.services import ATTACHMENT_BYTES
from compaction.budget import tool_outputs, trim
from compaction.memory import chapters, quotes, recall, tiers
from compaction.memory.people import MAX_FACTS_PER_BATCH
from compaction.notes import LIVE_NOTES, MAX_NOTE_CHARS
from compaction.session import SILENT_BACKLOG
from compaction.settings import RESERVED_OUTPUT_TOKENS
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.summary.prompt import MOST_READ_CHARS
from compaction.window import BATCH_SIZE, PENDING_NOTES_RUN, RECENT_WINDOW
from config.schema import SETTINGS
from tests.docs.pages import REPOSITORY, text_of
from voice.asr import reloading_model
from voice.realtime.port import REALTIME_LIMITS
from voice.screen import frame, notes, picture_worker
from voice.speaking import embedded

WORDS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen"),
)
HALF_AN_HOUR = RESUME_WITHIN_S / 1800

# Page, a piece of a sentence with `#` for the number, and the number in the code.
QUOTED = [
    ("guide", "first word must come within # seconds", USUAL_LIMITS.first_token_s),
    ("guide", "After # seconds the bot says", replier.ONE_MOMENT_AFTER_S),
    ("guide", "A model that fails twice in a row is left alone for # seconds", fallback.FIRST_OPEN_S),
    ("guide", "given up after # minutes", directory.INSTALL_TIMEOUT_S / 60),
    ("guide", "after at least # minutes", membership.LEAST_AWAY_S / 60),
    ("guide", "in which at least # turns were spoken", membership.LEAST_TURNS),
    ("guide", "is edited at most every # seconds", live_message.EDIT_EVERY_S),
    ("guide", "has at most # MB", transcript_files.MOST_BYTES / 1e6),
    ("operations", "lets a sentence that it is speaking end (# seconds at most)", speaking.LAST_SENTENCE_S),
    ("operations", "the voice connection is down for more than # seconds", room_faults.CONNECTION_GRACE_S),
    ("operations", "the recogniser has failed twice in a row", room_faults.FAILURES_OF_RECOGNISER / 2),
    ("operations", "less than # MB are free", service_checks.LEAST_FREE_BYTES / 1e6),
    ("operations", "the gateway has been away for more than a minute", discord_client.DISCORD_AWAY_S / 60),
    ("operations", "the event loop was # s late", overload.LATE_S),
    ("operations", "speech waited # s for the recogniser", overload.WAITED_S),
    ("operations", "is wrong for # s that you must mend", service_checks.TOLD_AFTER_S[Actor.OPERATOR]),
    ("operations", "or for # minutes that should have passed", service_checks.TOLD_AFTER_S[Actor.NOBODY] / 60),
    ("operations", "that hangs for # minutes", watchdog.HUNG_S / 60),
    ("operations", "are looked at every # seconds", service_checks.CHECK_EVERY_S),
    ("operations", "after # (`left_behind`) no model is loaded", reloading_model.MOST_LEFT_BEHIND),
    ("operations", "from # s to 5 minutes", reloading_model.FIRST_PAUSE_S),
    ("operations", "from 10 s to # minutes", reloading_model.LONGEST_PAUSE_S / 60),
    ("operations", "within half an hour it goes back to its room", HALF_AN_HOUR),
    ("dashboard", "# logged-in browsers", login_routes.MAX_LOGINS),
    ("dashboard", "At most # logins a minute", login_routes.MAX_TRIES),
    ("operations", "may have # pages open", web_connection.MAX_SOCKETS_PER_CLIENT),
    ("operations", "limits each link to # sockets", web_connection.MAX_SOCKETS_PER_LINK),
    ("privacy", "within # seconds after `roomtone memory forget`", renewal.LOOK_EVERY_S),
    ("memory", "its paragraph those of # characters", MOST_READ_CHARS),
    ("memory", "Within # seconds it reads its memory again", watches.CHECK_FORGETTINGS_S),
    ("memory", "checks the session's Segments every # turns", tiers.CHECK_EVERY_TURNS),
    ("memory", "it was not mentioned for # turns", tiers.COLD_AFTER_TURNS),
    ("memory", "left for # turns", tiers.DROPPED_AFTER_TURNS),
    ("memory", "at least # of its turns are speech", tiers.LEAST_MESSAGES),
    ("memory", "more than # % | cold", tiers.QUEUE_ABOVE * 100),
    ("memory", "more than # % | compressed", tiers.ARCHIVE_ABOVE * 100),
    ("memory", "are more than # turns old and still cold", tiers.ARCHIVE_AFTER_TURNS),
    ("memory", "person, at most #, and", MAX_FACTS_PER_BATCH),
    ("memory", "at most # for each person", people.FACTS_EACH),
    ("memory", "and # tokens in all", people.SECTION_TOKENS),
    ("memory", "# recent turns are never folded", RECENT_WINDOW),
    ("memory", "summary is at most # characters", MAX_SUMMARY_CHARS),
    ("memory", "the oldest # beyond them are folded together", BATCH_SIZE),
    ("memory", "# pending notes are folded alone", PENDING_NOTES_RUN),
    ("memory", "more than # turns are not folded", SILENT_BACKLOG),
    ("memory", "Of more than # characters the sentences about the question", quotes.MAX_QUOTE_CHARS),
    ("memory", "Hits at most # turns apart are one quote", quotes.SCENE_TURNS),
    ("memory", "All quotes have at most # tokens", QUOTE_TOKENS),
    ("memory", "are a chapter, of # to 120 turns", chapters.LEAST_TURNS),
    ("memory", "are a chapter, of 20 to # turns", chapters.MOST_TURNS),
    ("memory", "a pause of # minutes ends one", chapters.PAUSE_S / 60),
    ("memory", "the facts that fit into # tokens", chapters.PROMPT_TOKENS),
    ("memory", "of what is asked, in at most # tokens", chapters.ASKED_TOKENS),
    ("memory", "of which the # rarest words count", recall.MOST_ASKED),
    ("budget", "# tokens are kept free for the answer", RESERVED_OUTPUT_TOKENS),
    ("budget", "together at most # tokens", MAX_INPUT_TOKENS),
    ("memory", "the newest notes in # characters", MAX_NOTE_CHARS),
    ("budget", "the newest # turns; what is known", trim.PRESERVE_RECENT_TURNS),
    ("budget", "An output over # tokens", tool_outputs.MAX_TOOL_OUTPUT_TOKENS),
    ("budget", "older than # steps", tool_outputs.MAX_TOOL_OUTPUT_AGE),
    ("budget", "older than # steps", tool_outputs.MAX_TOOL_OUTPUT_AGE),
    ("tools", "the newest #, UTF-8", built_in.NEWEST),
    ("tools", "said aloud within # days", reminders.MOST_DAYS),
    ("tools", "at most # of one person", reminders.MOST_EACH),
    ("guide", "A voice message of at most # minutes", voice_messages.MOST_S / 60),
    ("tools", "up to # kB", ATTACHMENT_BYTES / 1024),
    ("tools", "A call lapses after # minutes", frozen_calls.LAPSE_S / 60),
    ("tools", "At most # wait or run in a room", frozen_calls.PLACES.most),
    ("tools", "After # seconds the answer says that it goes on", frozen_calls.REPLY_WAITS_S),
    ("tools", "A call may take # minutes", tools.CALL_TIMEOUT_S / 60),
    ("tools", "more than # MB in one message", message_limit.MOST_MESSAGE_BYTES / 1_000_000),
    ("tools", "after 1, 2, 4 … # seconds", connection.LONGEST_RETRY_S),
    ("tools", "longer than # characters disables its tool", tool_schema.MOST_SCHEMA_CHARS),
    ("tools", "Names are cut to # characters", tools.MOST_NAME_CHARS),
    ("screen", "pictures of at most # pixels", frame.MAX_SIDE_PX),
    ("screen", "and # KB, at most two a second", frame.MAX_FRAME_BYTES / 1000),
    ("screen", "notes of at most # characters", notes.MAX_NOTE_CHARS),
    ("screen", "The model gets the last #", LIVE_NOTES),
    ("screen", "it reads what it can in # seconds", picture_worker.READ_S),
    ("screen", "when nobody has spoken for # s", commentary.QUIET_S),
    ("screen", "remarks are at least # s apart", commentary.INTERVAL_REMARK_EVERY_S),
    ("screen", "for this session, within # minutes", screens.LINK_VALID_S / 60),
    ("realtime", "have at most # characters", system_prompt.MAX_CHARS),
    ("realtime", "(after # minutes)", REALTIME_LIMITS.session_s / 60),
    ("realtime", "in writing within # s)", REALTIME_LIMITS.hear_timeout_s),
    ("models", "not made within # s is said by the usual voice", embedded.SENTENCE_TIMEOUT_S),
]


def written(number: float) -> set[str]:
    """Return the ways in which a page may write a number."""
    if number != int(number):
        return {f"{number:g}"}
    return {f"{number:,.0f}", f"{number:.0f}", *WORDS[int(number) : int(number) + 1]}


@pytest.mark.parametrize(("page", "words", "number"), QUOTED, ids=lambda each: str(each)[:60])
def test_a_number_on_a_page_is_that_of_the_code(page: str, words: str, number: float) -> None:
    """The sentence stands there with the number. One without `#` says it in words, and the number is then 1."""
    ways = {words.replace("#", way) for way in written(number)} if "#" in words else {words}
    assert "#" in words or number == 1
    assert any(way in text_of(page) for way in ways), f"docs/{page}.md has none of {sorted(ways)}"


def test_a_value_beside_a_setting_is_its_default() -> None:
    """A number before the name of a setting in brackets is its default. Of several settings in brackets, the last
    numbers before them are meant, in their order. A field in seconds may be told in minutes.
    """
    found: dict[str, tuple[float, object]] = {}
    for page in sorted((REPOSITORY / "docs").glob("*.md")):
        text = text_of(page.stem)
        for beside in re.finditer(r"\((`[a-z]+\.[a-z_]+`(?:, `[a-z_]+`)*)[;,)]", text):
            before = re.split(r"[.|](?!\d)", text[max(0, beside.start() - 160) : beside.start()])[-1]
            section, *fields = re.findall(r"[a-z_]+", beside[1])
            near = before if len(fields) > 1 else before[-40:]
            numbers = re.findall(r"(\d[\d,]*(?:\.\d+)?) (\w+)", near)[-len(fields) :]
            for field, (number, unit) in zip(fields, numbers, strict=False):
                factor = 60 if unit == "minutes" and "_s" in field else 1
                told = float(number.replace(",", "")) * factor
                default = SETTINGS[section, field].default
                if isinstance(default, int | float):
                    found[f"{page.name}: {section}.{field}"] = (told, default)
    assert len(found) > 3
    assert {name: both for name, both in found.items() if both[0] != both[1]} == {}
