"""The slash command /recall: searches what was said, and shows it in pages that only the person sees.

Every press of a button searches again, so that nothing is shown that the person may not see any more, or that was
forgotten or withheld meanwhile. What was said after the command was used is left out, so the pages stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import discord
from discord import app_commands

from bot.channel.markdown import escape_markdown, in_message
from bot.discord.answers import Answer, answer, answer_when_known, change, defer, embed_in, language_of, outcome
from bot.discord.command_tree import CheckedCommandTree, CheckedView, over_buttons
from bot.discord.voice_channels import channel_name, nearest_channels
from bot.texts.text import Text, counted, in_language, joined, verbatim
from bot.time_phrases import TimeNotUnderstoodError, parse_moment
from compaction.language.text import cut_at_word
from compaction.memory.passage import PassageKind
from compaction.model import SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.memory.personal_recall import PersonalRecall
    from bot.memory.session_views import SessionViews
    from compaction.memory.recall import RecallHit

PAGE = 4
# So many turns before and after a hit are shown around it.
AROUND = 6
# Discord lets a bot change an answer that only one person sees for fifteen minutes.
BUTTONS_S = 14 * 60
MOST_WORDS_CHARS = 200
# How the ids of its buttons begin, and all of them.
_BUTTON = "roomtone:recall-"
BUTTONS = tuple(
    f"{_BUTTON}{name}"
    for name in ("before", "next", "back", "earlier", "later", *(f"around-{number}" for number in range(1, PAGE + 1)))
)
_TURN_CHARS, _HIT_CHARS, _PAGE_CHARS = 280, 940, 3_800
OFF = Text("The owner of this bot has switched off memory search.")
NOTHING = Text("I found nothing about that. I search only what you are allowed to see.")
GONE = Text("It is not there any more, or you are not allowed to see it now.")
OVER = Text("This button is too old. If nothing changes now, use /recall again.")
MOMENT = Text("I do not understand this time. Write for example 21:04, 2 hours ago or 2026-01-31.")


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a person has asked for, and what they see of it. Times: UTC epoch seconds.

    `around`: the session and turn whose neighbourhood they look at; None: the results.
    """

    words: str
    speaker: str | None
    since: float | None
    until: float
    page: int = 0
    around: tuple[SessionId, int] | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """Searches and shows. `tree`: knows the person as they are now."""

    tree: CheckedCommandTree
    recall: PersonalRecall
    views: SessionViews

    async def turn(self, interaction: discord.Interaction, wanted: _Shown) -> None:
        """Answer a press: show something else in the same message."""
        await defer(interaction, in_place=True)
        page = await outcome(self.page(interaction, wanted))
        await change(interaction, page.text, embed=page.embed, view=page.view)

    async def page(self, interaction: discord.Interaction, wanted: _Shown) -> Answer | Text:
        """Return a sentence if there is nothing to show, else the embed and its buttons. Raises `StoreError`."""
        if not self.recall.enabled:
            return OFF
        if wanted.around is not None:
            return await self._neighbourhood(interaction, wanted, wanted.around)
        return await self._results(interaction, wanted)

    async def _results(self, interaction: discord.Interaction, wanted: _Shown) -> Answer | Text:
        viewer = self.tree.viewer_of(interaction)
        hits = await self.recall.search(
            wanted.words,
            viewer,
            nearest=nearest_channels(interaction),
            speaker=wanted.speaker,
            since=wanted.since,
            until=wanted.until,
        )
        if not hits:
            return NOTHING
        pages = -(-len(hits) // PAGE)
        page = min(wanted.page, pages - 1)
        shown: list[tuple[RecallHit, str]] = []
        for hit in hits[page * PAGE : (page + 1) * PAGE]:
            session = await self.views.find(viewer, session_id=hit.session_id)
            if session is not None:
                shown.append((hit, channel_name(interaction, session.channel_id)))
        language = language_of(interaction)
        lines = [_hit_text(*each, number, language)[:_HIT_CHARS] for number, each in enumerate(shown, start=1)]
        found = counted(len(hits), "{count} place", "{count} places")
        head = Text("{found}, the best first. This is page {page} of {pages}.", found=found, page=page + 1, pages=pages)
        embed = embed_in(
            language,
            title=Text("What was said about {words}", words=wanted.words),
            text=joined((head, verbatim("\n\n".join(lines))), "\n\n"),
        )
        view = _Pages(self, replace(wanted, page=page), language)
        if pages > 1:
            view.add(Text("Before"), "before", disabled=page == 0, page=page - 1)
            view.add(Text("Next"), "next", disabled=page == pages - 1, page=page + 1)
        for number, (hit, _) in enumerate(shown, start=1):
            # Nothing was said around a note of a screen.
            if hit.kind is PassageKind.TURN and hit.seq is not None:
                near = (hit.session_id, int(hit.seq))
                view.add(Text("More around {number}", number=number), f"around-{number}", row=1, around=near)
        return Answer(embed=embed, view=view)

    async def _neighbourhood(
        self, interaction: discord.Interaction, wanted: _Shown, around: tuple[SessionId, int]
    ) -> Answer | Text:
        viewer = self.tree.viewer_of(interaction)
        session_id, seq = around
        language = language_of(interaction)
        view = _Pages(self, wanted, language)
        view.add(Text("Back"), "back", around=None)
        session = await self.views.find(viewer, session_id=session_id)
        turns = () if session is None else (await self.views.read(session, viewer)).turns
        near = {turn.seq: turn for turn in turns if seq - AROUND <= turn.seq <= seq + AROUND}
        if session is None or not near:
            return Answer(GONE, view=view)
        lines = {each.seq: _turn_text(each, marks=each.seq == seq) for each in near.values()}
        # One turn is always shown; the embed cuts it.
        while len(lines) > 1 and sum(len(line) + 1 for line in lines.values()) > _PAGE_CHARS:
            # Those farthest from the hit.
            del lines[max(lines, key=lambda each: abs(each - seq))]
        before, after = seq - 2 * AROUND, seq + 2 * AROUND
        is_first, is_last = turns[0].seq > before + AROUND, turns[-1].seq < after - AROUND
        view.add(Text("Earlier"), "earlier", disabled=is_first, around=(session_id, before))
        view.add(Text("Later"), "later", disabled=is_last, around=(session_id, after))
        embed = embed_in(
            language,
            title=Text("What was said in {channel}", channel=channel_name(interaction, session.channel_id)),
            text=joined(
                (
                    verbatim(f"<t:{near[min(lines)].started_at:.0f}:f>"),
                    verbatim("\n".join(lines.values())),
                ),
                "\n",
            ),
        )
        return Answer(embed=embed, view=view)


class _Pages(CheckedView):
    """The buttons below one answer. Only the person who sees the answer can press them."""

    def __init__(self, search: _Search, shown: _Shown, language: str) -> None:
        super().__init__(search.tree, "recall", timeout=BUTTONS_S)
        self._search = search
        self._shown = shown
        self._language = language

    def add(self, label: Text, name: str, *, row: int = 0, disabled: bool = False, **changes: Any) -> None:
        """Add a button. `changes`: what is shown then that is not shown now."""
        wanted = replace(self._shown, **changes)

        async def pressed(interaction: discord.Interaction) -> None:
            # The message gets other buttons; these would be kept until their time is over.
            self.stop()
            await self._search.turn(interaction, wanted)

        self.add_button(f"{_BUTTON}{name}", in_language(label, self._language), pressed, row=row, disabled=disabled)


def add_recall(
    tree: CheckedCommandTree,
    *,
    recall: PersonalRecall,
    views: SessionViews,
    clock: Clock,
    zone: tzinfo,
) -> None:
    """Put /recall on `tree`. `zone`: of the times that people write."""
    search = _Search(tree, recall, views)
    tree.lasting_views.append(lambda: [over_buttons(BUTTONS, OVER)])

    @tree.command(name="recall", description="Search what was said here. Only you see the results.")
    @app_commands.describe(
        words="What to search for. Use words that people probably said.",
        who="Write a name. Then you get only what this person said.",
        since="Only what was said after this time: 21:04, 2 hours ago or 2026-01-31.",
    )
    @app_commands.guild_only()
    async def recall_command(
        interaction: discord.Interaction,
        words: app_commands.Range[str, 1, MOST_WORDS_CHARS],
        who: app_commands.Range[str, 1, 100] | None = None,
        since: app_commands.Range[str, 1, 50] | None = None,
    ) -> None:
        asked_at = clock.now()
        try:
            begun = None if since is None else parse_moment(since, now=asked_at, zone=zone)
        except TimeNotUnderstoodError:
            await answer(interaction, MOMENT)
            return
        await answer_when_known(interaction, search.page(interaction, _Shown(words, who, begun, asked_at)))


def _hit_text(hit: RecallHit, channel: str, number: int, language: str) -> str:
    """Return a hit as people read it: when and where it was said, and the words with those around them."""
    head = f"**{number}.** <t:{hit.at:.0f}:f> · {escape_markdown(channel)}"
    if hit.superseded_by is not None:
        head += f" · *{in_language(Text('corrected later'), language)}*"
    if hit.kind is PassageKind.NOTE:
        seen = in_message(Text("on {name}'s screen", name=hit.speaker), language)
        return f"{head} · {seen}\n> {escape_markdown(cut_at_word(hit.text, _TURN_CHARS))}"
    return "\n".join((head, *(f"> {_turn_text(turn, marks=turn.seq == hit.seq)}" for turn in hit.turns)))


def _turn_text(turn: Turn, *, marks: bool) -> str:
    """Return what was said in a turn, on one line. `marks`: in bold."""
    said = " / ".join(
        escape_markdown(cut_at_word(part.text, _TURN_CHARS))
        if turn.kind in {TurnKind.MEMBERSHIP, TurnKind.EFFECT} and part.text.startswith(part.speaker)
        else f"{escape_markdown(part.speaker)}: {escape_markdown(cut_at_word(part.text, _TURN_CHARS))}"
        for part in turn.parts
    )
    return f"**{said}**" if marks else said
