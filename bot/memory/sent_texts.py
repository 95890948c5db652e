"""The texts of one session that models are sent and that are no turns: noted at each call, stored a moment later.

`bot.memory.explain` shows by their digests in the log what a model saw. System prompts are stored once for all
sessions, and again when they are still in use; other texts belong to the session (`bot.store.prompts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.store.prompts import RENEWED_S
from compaction.payload import PartKind, is_kept_as_sent, text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.clock import Clock
    from bot.store.prompts import PromptStore
    from compaction.model import SessionId
    from compaction.payload import PayloadPart


class SentTexts:
    """The sent texts of one session. Noting them does not wait."""

    def __init__(self, session_id: SessionId, store: PromptStore, clock: Clock) -> None:
        self._session_id = session_id
        self._store = store
        self._clock = clock
        # What waits to be stored, by digest.
        self._new_prompts: dict[str, str] = {}
        self._new_texts: dict[str, str] = {}
        # When each prompt was stored as sent, UTC epoch seconds.
        self._kept_prompts: dict[str, float] = {}
        # The digests of the texts in the last payload. A text is either repeated in the next payload or never comes
        # again, so older digests are not kept.
        self._kept_texts: set[str] = set()

    @property
    def waiting(self) -> bool:
        """Return whether something is to be stored."""
        return bool(self._new_prompts or self._new_texts)

    def note_payload(self, payload: Sequence[PayloadPart]) -> None:
        """Note what a payload has besides turns."""
        fresh_since = self._clock.now() - RENEWED_S
        for part in payload:
            if part.kind is PartKind.SYSTEM:
                digest = text_digest(part.content)
                if self._kept_prompts.get(digest, float("-inf")) <= fresh_since:
                    self._new_prompts[digest] = part.content
            elif is_kept_as_sent(part) and (digest := text_digest(part.content)) not in self._kept_texts:
                self._new_texts[digest] = part.content

    def note_messages(self, texts: Mapping[str, str]) -> None:
        """Note messages, by digest, that are in no part of a payload."""
        self._new_texts |= {digest: text for digest, text in texts.items() if digest not in self._kept_texts}

    async def store(self, is_current: Callable[[int], bool]) -> bool:
        """Store what waits. Return False if the session has changed since then: texts other than prompts may hold what
        was forgotten, and are not stored. `is_current`: see `PromptStore.store_sent_texts`.

        Raises `StoreError`; what is not stored goes on waiting.
        """
        prompts, texts, sent_at = dict(self._new_prompts), dict(self._new_texts), self._clock.now()
        if prompts:
            await self._store.store_prompts(self._session_id, prompts.values(), sent_at=sent_at)
            self._kept_prompts |= dict.fromkeys(prompts, sent_at)
            for digest in prompts:
                del self._new_prompts[digest]
        if texts:
            if not await self._store.store_sent_texts(self._session_id, texts.values(), is_current=is_current):
                return False
            self._kept_texts = set(texts)
            for digest in texts:
                self._new_texts.pop(digest, None)
        return True

    def on_forgotten(self) -> None:
        """Drop the texts that may hold what was forgotten. Prompts that named somebody were deleted from the store;
        what is still in use is stored again.
        """
        self._new_texts.clear()
        self._kept_texts.clear()
        self._kept_prompts.clear()
