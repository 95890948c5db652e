"""The live events of the rooms: what pages get, what they get again, and what they never get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.channel.port import Person
from bot.cost import Cost
from bot.dashboard.access import EVERYTHING, NOTHING, Access
from bot.dashboard.live import WAITING_CHARS, WAITING_EVENTS, Follower
from bot.events import CompactionLanded, StatusTold, UtteranceTranscribed
from bot.texts.text import Text
from bot.viewers import Viewer
from compaction.model import SessionId
from tests.bot.dashboard.house import ADA, BEN, DashboardHouse, open_house
from tests.bot.evening import CHANNEL, GUILD, forget

SECRET = "My password is tangerine."


async def everything() -> Access:
    """Return the operator's access."""
    return EVERYTHING


async def waiting(feed: Follower, *, with_looks: bool = False) -> list[tuple[str, str, Any]]:
    """Return id, kind and data of every event that waits. `with_looks`: also those that come with time alone."""
    events: list[tuple[str, str, Any]] = []
    while True:
        try:
            async with asyncio.timeout(0.01):
                text = await feed.next()
        except TimeoutError:
            return events
        if text is None:
            return [*events, ("", "over", None)]
        fields = dict(line.split(": ", 1) for line in text.strip().split("\n"))
        if "event" in fields and (with_looks or fields["event"] not in {"people", "cost"}):
            events.append((fields["id"], fields["event"], json.loads(fields["data"])))


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[DashboardHouse]:
    """A room that is shown."""
    async with open_house(tmp_path) as opened:
        yield opened


@pytest.fixture
def feed(house: DashboardHouse) -> Iterator[Follower]:
    """What the operator is sent of the room."""
    with house.live.follow(everything, "") as follower:
        yield follower


async def test_a_page_gets_what_happens_as_it_happens(feed: Follower, house: DashboardHouse) -> None:
    """Words come when they are heard and again as a turn; then the prompt, the reply and its latency, and the fold."""
    await house.say("Shall we visit Lisbon?")
    turn = await house.say("Roomtone, when is the train?", BEN)
    await house.answer(turn, "At nine.")
    await house.note("A map")
    events = await waiting(feed)
    kinds = [kind for _, kind, _ in events]
    assert kinds == ["heard", "turn", "heard", "turn", "prompt", "turn", "reply", "note"]
    heard = {"id": "u1", "speaker": "2001", "who": "Ada", "text": "Shall we visit Lisbon?"}
    assert events[0][2] == {"session": "evening", **heard}
    assert events[1][2]["heard"] == ["u1"]
    reply = events[6][2]["reply"]
    assert reply["endpoint"] + reply["recognise"] + reply["model"] + reply["voice"] <= reply["total"]
    await house.play(70)
    fold, *_ = [data for _, kind, data in await waiting(feed) if kind == "fold"]
    assert 0 < fold["cursor"] <= house.timeline.cursor
    assert fold["summary"]


async def test_a_page_that_comes_back_reads_anew_what_it_missed(house: DashboardHouse) -> None:
    """If it has missed nothing it goes on. An unknown id means that something was missed."""
    with house.live.follow(everything, "") as feed:
        await house.say("One.")
        last = (await waiting(feed))[-1][0]
    with house.live.follow(everything, last) as feed:
        assert await waiting(feed) == []
    await house.say("Two.")
    for missed in (last, "elsewhere-1", "²-²", "\n\nevent: turn"):
        with house.live.follow(everything, missed) as feed:
            assert [kind for _, kind, _ in await waiting(feed)] == ["again"]


@pytest.mark.parametrize(
    ("most_events", "words"), [(20, "Hello."), (WAITING_EVENTS, "x" * (WAITING_CHARS // 20))], ids=["number", "length"]
)
async def test_a_slow_page_is_dropped_and_the_others_go_on(
    house: DashboardHouse, monkeypatch: pytest.MonkeyPatch, most_events: int, words: str
) -> None:
    """What waits for a page is bounded, by the number of events and by their length. Beyond it, the feed ends."""
    monkeypatch.setattr("bot.dashboard.live.WAITING_EVENTS", most_events)
    with house.live.follow(everything, "") as slow, house.live.follow(everything, "") as quick:
        for number in range(25):
            house.observe(UtteranceTranscribed(f"u{number}", ADA.id, words, 0.0, 1.0, 2.0))
            assert [kind for _, kind, _ in await waiting(quick)] == ["heard"]
        assert await slow.next() is None
        assert not slow.waiting


# Somebody in the channel.
MEMBER = Access({GUILD: frozenset({CHANNEL})}, viewers={GUILD: Viewer(str(BEN.id), GUILD, frozenset({CHANNEL}))})


@pytest.mark.parametrize("lost", [NOTHING, Access(is_whole=False), Access({GUILD: frozenset({CHANNEL + 1})})])
async def test_a_page_reads_anew_when_its_viewer_may_see_something_else(house: DashboardHouse, lost: Access) -> None:
    """Also while the room is quiet, and also because Discord does not answer: the page never goes on showing what has
    ended or is no longer its viewer's to see.
    """
    access = MEMBER

    async def now() -> Access:
        return access

    async def kinds() -> list[str]:
        return [kind for _, kind, _ in await waiting(page)]

    with house.live.follow(now, house.live.mark) as page:
        await house.say("For members.")
        assert await kinds() == ["heard", "turn"]
        access = lost
        assert await kinds() == ["again"]
        await house.say("Not for you.")
        assert await kinds() == []
        access = MEMBER
        await house.say("For members again.")
        assert await kinds() == ["again"]
        await house.say("And again.")
        assert await kinds() == ["heard", "turn"]
    assert house.live.rooms(lost) == []
    assert len(house.live.rooms(MEMBER)) == 1


async def test_words_of_who_opts_out_leave_every_feed(house: DashboardHouse) -> None:
    """Kept and waiting events of the room are dropped, and its pages read anew. Nor do notes come from then on."""
    with house.live.follow(everything, "") as feed:
        await house.say("Hello.", BEN)
        mark = (await waiting(feed))[-1][0]
        await house.say(SECRET, ADA)
        await house.opt_out(ADA)
        events = await waiting(feed)
        assert "tangerine" not in str(events)
        assert "reset" in [kind for _, kind, _ in events]
        await house.note(SECRET)
        assert "tangerine" not in str(await waiting(feed))
    with house.live.follow(everything, mark) as feed:
        events = await waiting(feed)
        assert "tangerine" not in str(events)
        assert [kind for _, kind, _ in events][:1] in (["reset"], ["again"])


async def test_the_latest_unfinished_words_replace_those_that_wait(feed: Follower, house: DashboardHouse) -> None:
    """A page gets the latest of each person only, and is told when they are over: transcribed or dropped."""
    house.speak_on("I think")
    house.speak_on("Well.", BEN)
    house.speak_on("I think that we")
    told = [(kind, data["who"], data["text"]) for _, kind, data in await waiting(feed)]
    assert told == [("interim", "Ben", "Well."), ("interim", "Ada", "I think that we")]
    await house.say("I think that we leave at nine.")
    house.drop(BEN)
    events = await waiting(feed)
    assert [kind for _, kind, _ in events] == ["interim", "heard", "turn", "interim", "dropped"]
    assert [(data["who"], data["text"]) for _, kind, data in events if kind == "interim"] == [
        ("Ada", ""),
        ("Ben", ""),
    ]
    # There is nothing to end any more.
    house.drop(BEN)
    assert [kind for _, kind, _ in await waiting(feed)] == ["dropped"]


async def test_unfinished_words_are_kept_nowhere(house: DashboardHouse) -> None:
    """A page that comes back does not get them, and they take no place of what must not be missed."""
    await house.say("One.")
    with house.live.follow(everything, "") as feed:
        await house.say("Two.")
        mark = (await waiting(feed))[-1][0]
        house.speak_on(SECRET)
        ((passing, kind, _),) = await waiting(feed)
        assert (passing, kind) == (mark, "interim")
    with house.live.follow(everything, mark) as feed:
        assert await waiting(feed) == []
    (room,) = house.live.rooms(EVERYTHING)
    assert "tangerine" not in json.dumps(room.figures())


async def test_unfinished_words_are_the_first_to_go(feed: Follower, house: DashboardHouse) -> None:
    """A page for which too much waits loses unfinished words before it loses its connection."""
    while len(feed.waiting) < WAITING_EVENTS:
        house.drop()
    house.speak_on("Lost.")
    house.speak_on("Lost too.", BEN)
    assert {kind for _, kind, _ in await waiting(feed)} == {"dropped"}
    house.speak_on("Shown.")
    assert [kind for _, kind, _ in await waiting(feed)] == ["interim"]


async def test_forgotten_words_leave_every_feed(feed: Follower, house: DashboardHouse) -> None:
    """As soon as the memory has taken over what somebody forgot elsewhere, pages read anew."""
    await house.say(SECRET, ADA)
    await forget(house.evening.database, house.clock, "Ada")
    await house.timeline.refresh()
    await house.look()
    events = await waiting(feed)
    assert "tangerine" not in str(events)
    assert "reset" in [kind for _, kind, _ in events]


async def test_a_room_that_closes_takes_its_events_with_it(tmp_path: Path) -> None:
    """After the end only the end is told, and nobody is kept waiting."""
    async with open_house(tmp_path, shown=False) as house:
        guild = await house.participation.of_guild(GUILD)
        with house.live.follow(everything, "") as feed:
            with house.live.show(house.evening.session_id, house.channel, house.timeline, guild) as house.observe:
                await house.say(SECRET)
            assert [kind for _, kind, _ in await waiting(feed)] == ["closed"]
    assert await feed.next() is None


async def test_a_page_gets_only_the_words_that_its_viewer_hears(house: DashboardHouse) -> None:
    """Who is in the channel gets what is said from then on; another viewer gets the number of each turn."""
    here = frozenset({CHANNEL})

    async def outsider() -> Access:
        return Access({GUILD: here}, viewers={GUILD: Viewer("2009", GUILD, here)})

    with house.live.follow(outsider, "") as feed:
        await house.say("Now about Dee's birthday.")
        assert [(kind, "birthday" in str(data)) for _, kind, data in await waiting(feed)] == [("turn", False)]
        house.channel.people.append(Person(2009, "Dee", is_bot=False))
        house.observe(UtteranceTranscribed("u1", ADA.id, "Hello, Dee.", 0.0, 1.0, 2.0))
        assert [kind for _, kind, _ in await waiting(feed)] == ["heard"]
        await house.say("How are you?")
        assert [(kind, "How" in str(data)) for _, kind, data in await waiting(feed)] == [
            ("heard", True),
            ("turn", True),
        ]


async def test_people_and_costs_are_told_when_they_change(feed: Follower, house: DashboardHouse) -> None:
    """Every few seconds the dashboard looks who is there; what did not change is not told again."""
    await house.look()
    assert [kind for _, kind, _ in await waiting(feed, with_looks=True)] == ["people", "cost"]
    await house.look()
    assert await waiting(feed, with_looks=True) == []
    house.channel.people = [ADA]
    await house.opt_out(ADA)
    await waiting(feed)
    house.observe(StatusTold(Text("I only write down what is said.")))
    await house.look()
    ((_, kind, data),) = await waiting(feed, with_looks=True)
    assert kind == "people"
    assert [(person["name"], person["heard"]) for person in data["people"]] == [("Ada", False)]
    assert data["status"] == "I only write down what is said."
    house.channel.people = [ADA, BEN]
    await house.look()
    await waiting(feed, with_looks=True)
    # Within the minute of the last sample it is told, but not kept as a sample.
    guild = await house.participation.of_guild(GUILD)
    guild.costs.add(Cost(calls=1, tokens=650), now=house.clock.monotonic())
    await house.look()
    ((_, kind, data),) = await waiting(feed, with_looks=True)
    assert (kind, data["cost"]["tokens"], data["kept"]) == ("cost", 650, False)
    house.clock.advance(60)
    await house.look()
    ((_, kind, data),) = await waiting(feed, with_looks=True)
    assert (kind, data["cost"]["tokens"], data["kept"]) == ("cost", 650, True)


async def test_a_fault_of_the_dashboard_does_not_reach_the_room(
    feed: Follower, house: DashboardHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an event or a look fails, it is logged, and the next ones are told again."""

    def fails(*_: object) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr("bot.dashboard.live_room.turn_json", fails)
        await house.say("One.")
        patched.setattr(house.channel, "members", fails)
        await house.look()
    await waiting(feed)
    await house.say("Two.")
    assert [kind for _, kind, _ in await waiting(feed)] == ["heard", "turn"]
    house.channel.people = [ADA]
    await house.look()
    assert "people" in [kind for _, kind, _ in await waiting(feed, with_looks=True)]


async def test_of_a_room_that_has_ended_nothing_more_is_told(feed: Follower, house: DashboardHouse) -> None:
    """A fold that lands as a room ends is told by no event after its end."""
    guild = await house.participation.of_guild(GUILD)
    landed = CompactionLanded(0, 1, 0, SECRET, 1.0, at=house.clock.monotonic())
    with house.live.show(SessionId("over"), house.channel, house.timeline, guild) as observe:
        observe(landed)
    observe(landed)
    assert [kind for _, kind, _ in await waiting(feed)][-1] == "closed"
