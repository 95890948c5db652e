"""What becomes of a guild's room when it is asked to end, moved, has ended or has crashed. Pure; `guild_room` does it.

| state     | asked to end | moved    | its room has ended | its room has crashed            | its pause is over |
|-----------|--------------|----------|--------------------|---------------------------------|-------------------|
| `Running` | `Ending`     | `Moving` | `Over`             | `Pausing` or `Over`             |                   |
| `Moving`  | `Ending`     | `Moving` | `Running`          | `Running`                       |                   |
| `Pausing` | `Ending`     |          |                    |                                 | `Running`         |
| `Ending`  | `Ending`     |          | `Over`             | `Over`                          | `Over`            |
| `Over`    | `Over`       |          |                    |                                 |                   |

A room that is cut off, or that another process has taken over, is over in any state, as is one in which somebody took
the bot out of the channel, although it was to follow people. One that crashes while it ends by itself counts as asked
to end. How often and how soon one that has crashed starts again is decided by `RoomRestarts`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, assert_never

from bot.errors import crash_sentence
from bot.posts.notice import NotAnnouncedError
from bot.room.leaving import EXPELLED, HANDED_OVER, NOT_JOINED, PROCESS_ENDS, TAKEN_OVER_ERRORS
from bot.texts.text import Text, counted, sentence_of
from compaction.errors import StoreError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from bot.channel.port import RoomChannel

# The first restart comes soon: most crashes do not repeat. Doubled for each further crash in a row.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# After more crashes in a row the room stays closed.
MOST_CRASHES: Final = 5
# After a room has run this long, its crashes are counted anew.
STABLE_S: Final = 300.0
# Between two attempts of a room that waits for the database. One is a query or two, and people wait for it.
DATABASE_PAUSE_S: Final = 5.0


def waits_for_database(error: Exception, *, has_opened: bool) -> bool:
    """Return whether a room that has ended with `error` waits for the database, which is no crash. A room that was open
    keeps in memory what it cannot store, so one that ends all the same has crashed.
    """
    return isinstance(error, StoreError) and not has_opened


class RoomRestarts:
    """The restarts of one room."""

    def __init__(self) -> None:
        # In a row.
        self.crashes = 0

    def pause_after(self, *, ran_s: float) -> float | None:
        """Return how long a room that crashed after `ran_s` seconds waits for its next start; None: it stays closed."""
        self.crashes = 1 if ran_s >= STABLE_S else self.crashes + 1
        if self.crashes > MOST_CRASHES:
            return None
        return retry_pause_s(self.crashes, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)


# What leaves a session for another room: the next process goes on with it, and who could not be joined may ask again.
GOES_ON = frozenset({PROCESS_ENDS, HANDED_OVER, NOT_JOINED})


class LastSession(Enum):
    """What the last room has left of its session."""

    # The room has ended in order and stored the end of its session.
    ENDED = auto()
    # As far as is known. The next room in the channel resumes it, unless it is ended before.
    OPEN = auto()
    # Another process goes on with it.
    TAKEN_OVER = auto()


@dataclass(frozen=True, slots=True)
class Running:
    """A room opens or is open. `is_moved`: somebody moved the bot there, and no room has opened there yet. `waits`: the
    one before could not open because the database was away.
    """

    channel: RoomChannel
    is_moved: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Moving:
    """The room is asked to end, so that the next one opens in `to`."""

    channel: RoomChannel
    to: RoomChannel


@dataclass(frozen=True, slots=True)
class Pausing:
    """No room runs for `pause_s` seconds; then comes `following`."""

    following: Running
    pause_s: float

    @property
    def channel(self) -> RoomChannel:
        return self.following.channel


@dataclass(frozen=True, slots=True)
class Ending:
    """The room is asked to end, and no other follows. `ends_session`: nor shall one resume its session."""

    channel: RoomChannel
    ends_session: bool


@dataclass(frozen=True, slots=True)
class Over:
    """No room runs or follows. The bot may still be in the channel, until it was taken out. `ends_session`: no
    room shall resume one that is open.
    """

    channel: RoomChannel
    session: LastSession
    ends_session: bool = False


State = Running | Moving | Pausing | Ending | Over


@dataclass(frozen=True, slots=True)
class Crash:
    """A room has ended with `error` after `ran_s` seconds. `has_opened`: it was open. `is_awaited`: somebody has called
    the bot and still waits for it to come; they get the error.
    """

    error: Exception
    ran_s: float
    has_opened: bool
    is_awaited: bool


class RoomLifecycle:
    """The state of one guild's room, which begins in `channel`."""

    def __init__(self, channel: RoomChannel) -> None:
        self.state: State = Running(channel)
        # A room has left a session open that nobody shall resume, unless another one opens.
        self._is_left_open = False
        self._restarts = RoomRestarts()

    @property
    def bound_for(self) -> RoomChannel:
        """Return where the next room opens if the bot is being moved, else where it is."""
        return self.state.to if isinstance(self.state, Moving) else self.state.channel

    @property
    def waits(self) -> bool:
        """Return whether the room that runs was tried before, and the database was away."""
        return isinstance(self.state, Running) and self.state.waits

    @property
    def is_session_unwanted(self) -> bool:
        """Return whether the room is over and has left a session open that nobody shall resume: the bot was sent away,
        or has given up. It would come back at its next start.
        """
        state = self.state
        return isinstance(state, Over) and state.ends_session and state.session is LastSession.OPEN

    def overlooks_removal(self, *, room_sees_it: bool) -> bool:
        """Return whether nothing else would end the room if somebody takes the bot out of the channel now.
        `room_sees_it`: the room that runs has a connection there, which ends.
        """
        match self.state:
            case Moving() | Pausing():
                return True
            case Running():
                return not room_sees_it
            case Ending() | Over():
                return False
            case _ as never:
                assert_never(never)

    def ask_to_end(self, reason: str) -> None:
        """No room is wanted any more. A session that was to end does, whoever else asks."""
        ends_session = reason not in GOES_ON
        match self.state:
            case Ending() | Over() as state:
                self.state = replace(state, ends_session=state.ends_session or ends_session)
            case Running() | Moving() | Pausing() as state:
                self.state = Ending(state.channel, ends_session)
            case _ as never:
                assert_never(never)

    def move_to(self, channel: RoomChannel) -> bool:
        """Somebody has moved the bot to `channel`. Return whether the room has to end for that: not if it is there or
        is ending, nor in a pause, because the next room takes the bot back.

        A room that ends by itself (nobody is left, the session is as long as it may be, there is no notice or thread)
        is moved too: whoever drags the bot just then wants it there, and the other channel begins a session of its own,
        for which none of these reasons holds. Only who has sent the bot away, or taken it out, wants it nowhere.
        """
        if not isinstance(self.state, Running | Moving) or channel.channel_id == self.bound_for.channel_id:
            return False
        self.state = Moving(self.state.channel, to=channel)
        return True

    def room_ended(self, reason: str, *, has_opened: bool, left_open: bool = False) -> None:
        """The room has ended in order, for `reason`. `has_opened`: it was open. `left_open`: it could not store the end
        of its session.
        """
        self._apply_opening(has_opened=has_opened)
        if isinstance(self.state, Moving) and reason != EXPELLED:
            # The room that opens in the other channel ends that session. If none does, nobody wants the bot back here.
            self._is_left_open |= left_open
            self.state = Running(self.state.to, is_moved=True)
        else:
            session = LastSession.ENDED if has_opened and not left_open else LastSession.OPEN
            self._stop(session, ends_session=reason not in GOES_ON)

    def room_crashed(self, crash: Crash) -> Text | None:
        """The room has crashed. Return what is written into its channel, if anything: why, and what comes next."""
        self._apply_opening(has_opened=crash.has_opened)
        if isinstance(crash.error, TAKEN_OVER_ERRORS):
            # Starting again would take the room back, and the two would go on like that.
            self._stop(LastSession.TAKEN_OVER)
            return sentence_of(crash.error)
        match self.state:
            case Running() as crashed:
                return self._after_crash(crashed, crash)
            case Moving(to=to):
                self.state = Running(to, is_moved=True)
            case _:
                # Nobody wants one back that was asked to end.
                self._stop(LastSession.OPEN)
        return None

    def _after_crash(self, crashed: Running, crash: Crash) -> Text | None:
        error = crash.error
        if crash.is_awaited:
            # Who has called the bot may try again.
            self._stop(LastSession.OPEN)
            return None
        if waits_for_database(error, has_opened=crash.has_opened):
            self.state = Pausing(replace(crashed, waits=True), DATABASE_PAUSE_S)
            if crashed.waits:
                return None
            return Text(
                "{why} I try again every {seconds} seconds. What was said before is safe.",
                why=sentence_of(error),
                seconds=DATABASE_PAUSE_S,
            )
        comes_by_move = crashed.is_moved and not crash.has_opened
        if comes_by_move:
            # The bot may not join there; trying again would not help.
            self._stop(LastSession.OPEN, ends_session=True)
            return Text("I could not go with you. {why}", why=crash_sentence(error))
        if isinstance(error, NotAnnouncedError):
            # Trying again would not help before somebody changes the permissions.
            self._stop(LastSession.OPEN, ends_session=True)
            return sentence_of(error)
        pause_s = self._restarts.pause_after(ran_s=crash.ran_s)
        if pause_s is None:
            self._stop(LastSession.OPEN, ends_session=True)
            return Text(
                "{why} I have tried {count} times, so I stop trying. Use /join to call me back.",
                why=crash_sentence(error),
                count=self._restarts.crashes,
            )
        self.state = Pausing(Running(crashed.channel), pause_s)
        return counted(
            pause_s,
            "{why} I start again in {count} second. What was said before is safe.",
            "{why} I start again in {count} seconds. What was said before is safe.",
            why=crash_sentence(error),
        )

    def pause_over(self) -> None:
        """The pause after a crash is over."""
        if isinstance(self.state, Pausing):
            self.state = self.state.following
        else:
            self._stop(LastSession.OPEN)

    def cut_off(self, *, has_opened: bool) -> None:
        """Whatever room there was has not ended in order, and none follows. `has_opened`: it was open."""
        self._apply_opening(has_opened=has_opened)
        if not isinstance(self.state, Over):
            self._stop(LastSession.OPEN)

    def _apply_opening(self, *, has_opened: bool) -> None:
        """A room that opens has resumed what was left open in its channel, and ended it in others."""
        self._is_left_open &= not has_opened

    def _stop(self, session: LastSession, *, ends_session: bool = False) -> None:
        ends_session |= self._is_left_open or (isinstance(self.state, Ending) and self.state.ends_session)
        self.state = Over(self.state.channel, session, ends_session)
