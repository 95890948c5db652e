"""Who handles what the other process asks and tells, by the class of the message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from bot.remote.messages.frames import Notice, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RequestT = TypeVar("RequestT", bound=Request[Any])
NoticeT = TypeVar("NoticeT", bound=Notice)


@dataclass(slots=True)
class Handlers:
    """The handlers of one side, by name of the message's class. Register them before the first message can come."""

    answers: dict[str, tuple[type[Request[Any]], Callable[[Any], Awaitable[object]]]] = field(default_factory=dict)
    hears: dict[str, tuple[type[Notice], Callable[[Any], None]]] = field(default_factory=dict)

    def answer(self, request: type[RequestT], handler: Callable[[RequestT], Awaitable[object]]) -> None:
        """Answer requests of a class with what `handler` returns, each in a task of its own, begun in their order.

        An error of ours is raised for who asked, with its text; any other one is logged here.
        """
        assert request.__name__ not in self.answers, "one handler for each class"
        self.answers[request.__name__] = (request, handler)

    def hear(self, notice: type[NoticeT], handler: Callable[[NoticeT], None]) -> None:
        """Give notices of a class to `handler`, in their order. It must be quick."""
        assert notice.__name__ not in self.hears, "one handler for each class"
        self.hears[notice.__name__] = (notice, handler)
