"""May these words still be used? One answer for all that a session made of what people said.

People take words back: by /opt-out, by no longer agreeing to be heard, by /forget-me, here or in another process. Until
then the words have gone many ways: into a text that is not finished, a prompt, a held reply, a caption, a tool's
result. `Words` is the only thing in the process that is told. It does not know where the words have gone. Instead,
whatever is made of words is made under a `Lease`, and asks it at the moment of use: before it is stored, spoken, sent
to a model, posted or shown.

**Sources.** A lease names what the thing was made of: people, by their ids, or `SESSION`, for what may repeat anything
that was said. A person's lease ends when that person takes words back. One of `SESSION` ends when anybody opts out or
no longer agrees, and when turns of the session are forgotten: nobody can tell which words a reply was made of, so all
of it goes. `Words.epoch` counts that, for those who only compare before and after.

**Since.** Words are taken back with the time until which they were said. A lease of what somebody said before that is
over from the beginning, so speech that becomes text late is not used either. None stands for what is made now.

**Use.** `Leased` carries a value with its lease, and `take` gives None once that has ended. To forget to drop something
is no fault: it cannot be used. Take the lease before the first `await` between the words and what is made of them.

**Ends at once.** `Lease.on_end` is for the few things that must not go on until somebody looks: sound that plays, a
share of a screen, a call that runs, what a provider holds. *Ownership*: whoever wants to be told keeps the lease. A
lease that nobody keeps tells nobody.

A lease of nobody, or of a source that is no person, is a fault of ours. It is logged, and its words are not used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

log = structlog.get_logger()

T = TypeVar("T")


class WholeSession(Enum):
    """What may repeat anything that was said in a session is made of all of it."""

    SESSION = auto()


SESSION: Final = WholeSession.SESSION
# A person's id, as Discord has it or as turns have it.
Source = int | str | WholeSession


class Words:
    """The words of one session. `excludes`: returns whether a person may not be heard at all.

    Everything is called on the room's loop, except `excludes` and `may_use`, which are thread-safe.
    """

    def __init__(
        self, excludes: Callable[[int], bool] = lambda _: False, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.excludes = excludes
        self._monotonic = monotonic
        # How often turns of the session were taken back.
        self.epoch = 0
        # How often anything was, and of each person the number of the last time and when that was.
        self.times = 0
        self._taken: dict[int, tuple[int, float]] = {}
        # Those whose end somebody wants to know, in order.
        self._watched: WeakKeyDictionary[Lease, None] = WeakKeyDictionary()

    def may_use(self, person_id: int, *, since: float) -> bool:
        """Return whether what a person began to say at `since` (monotonic seconds) may be used."""
        return not self.excludes(person_id) and since >= self.taken_back_at(person_id)

    def taken_back_at(self, person_id: int) -> float:
        """Return until when what a person said is taken back, in monotonic seconds."""
        return self._taken.get(person_id, (0, float("-inf")))[1]

    def lease(self, sources: Collection[Source], *, since: float | None) -> Lease:
        """Return the lease of something that is made of these sources. `since`: when the first of the people began to
        say it, monotonic seconds; None: it is made now.
        """
        try:
            people = frozenset(int(each) for each in sources if each is not SESSION)
        except ValueError:
            people, sources = frozenset(), ()
        if not sources:
            log.error("lease_without_source")
        at = self._monotonic() if since is None else since
        may_begin = bool(sources) and all(at >= self.taken_back_at(each) for each in people)
        return Lease(self, people if may_begin else None, self.epoch if SESSION in sources else None, self.times)

    def take_back(self, people: Iterable[str] = (), *, turns: bool) -> None:
        """End every lease of these people (ids), for all that they have said until now. `turns`: turns of the session
        are gone too, so whatever was made of it ends.
        """
        self.times += 1
        now = self._monotonic()
        self._taken.update((int(each), (self.times, now)) for each in people if each.isdecimal())
        self.epoch += turns
        for lease in [each for each in self._watched if not each.valid]:
            self._watched.pop(lease, None)
            lease.end()

    def allows(self, person_id: int, *, taken: int) -> bool:
        """Return whether a lease that began after so many takings back still has this person's words."""
        return self._taken.get(person_id, (0, 0.0))[0] <= taken and not self.excludes(person_id)

    def watch(self, lease: Lease) -> None:
        """Call `lease.end` when it has ended, as long as somebody keeps it."""
        self._watched[lease] = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Lease:
    """See the module. `people`: their ids; None: it has never been valid. `epoch`: that in which it was made of the
    whole session; None: it was not. `taken`: how often words were taken back before.
    """

    _words: Words
    _people: frozenset[int] | None
    _epoch: int | None
    _taken: int
    _stops: list[Callable[[], object]] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        """Whether the words may still be used."""
        if self._people is None or self._epoch not in (None, self._words.epoch):
            return False
        return all(self._words.allows(each, taken=self._taken) for each in self._people)

    def on_end(self, stop: Callable[[], object]) -> None:
        """Have `stop` called once when the lease ends; at once if it has. What it raises is logged, and the others are
        called all the same.
        """
        self._stops.append(stop)
        if self.valid:
            self._words.watch(self)
        else:
            self.end()

    def end(self) -> None:
        """Call what waits for the end."""
        while self._stops:
            try:
                self._stops.pop(0)()
            except Exception:
                log.exception("words_not_stopped")


@dataclass(frozen=True, slots=True)
class Leased(Generic[T]):
    """A value that is made of words."""

    _value: T
    lease: Lease

    def take(self) -> T | None:
        """Return the value; None once its words may not be used any more."""
        return self._value if self.lease.valid else None
