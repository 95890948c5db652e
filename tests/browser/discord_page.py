"""Draws messages of a bot as Discord shows them: one HTML page with two columns, without scripts. Pure.

Only what Roomtone posts and people type is drawn: text with Discord's Markdown, mentions and times, embeds with fields,
buttons and menus. Every text is escaped before anything else is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from html import escape

from rehearsal.discord.guild.payloads import Json

# Discord's flag of messages that one person sees, and its styles of buttons.
_EPHEMERAL = 1 << 6
_BUTTONS = {1: "primary", 2: "secondary", 3: "success", 4: "danger"}
_MARKDOWN = (
    (re.compile(r"\*\*(.+?)\*\*"), r"<b>\1</b>"),
    (re.compile(r"(?<![\w*])\*(.+?)\*(?![\w*])"), r"<i>\1</i>"),
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
)
_CODE = re.compile(r"```\w*\n(.*?)\n```\n?", re.DOTALL)
# What Markdown would read stands behind a backslash if it is to be read as it is.
_LITERAL = re.compile(r"\\([^\w\s]|_)")
_MENTION = re.compile(r"&lt;@!?(\d+)&gt;")
_COMMAND = re.compile(r"&lt;(/[^:]+):\d+&gt;")
_TIME = re.compile(r"&lt;t:(\d+)(?::(\w))?&gt;")
_TIMES = {"t": "%-H:%M", "d": "%d/%m/%Y", "f": "%-d %B %Y %-H:%M"}
_ITEM = re.compile(r"^- (.*)$")


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A message to draw. `payload`: as the local Discord has it. `asked`: who used which command for it. `answers`: the
    message of somebody that it replies to.
    """

    payload: Json
    asked: tuple[str, str] | None = None
    answers: Json | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """The messages that somebody sees. `place`: the channel. `reader`: who looks, in words."""

    place: str
    reader: str
    messages: Sequence[ShownPage]


def discord_page(columns: Sequence[Column], names: Mapping[int, str], *, zone: tzinfo = UTC) -> str:
    """Return the page. `names`: of the people whom a message may mention, by id."""
    ink = _Ink(names, zone)
    drawn = "".join(
        f"<section><header><b>{escape(column.place)}</b><span>{escape(column.reader)}</span></header>"
        f"{''.join(ink.message(each) for each in column.messages)}</section>"
        for column in columns
    )
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{_STYLE}</style><main>{drawn}</main></html>'


class _Ink:
    def __init__(self, names: Mapping[int, str], zone: tzinfo) -> None:
        self._names = names
        self._zone = zone

    def message(self, shown: ShownPage) -> str:
        payload = shown.payload
        author = payload["author"]["global_name"]
        at = datetime.fromisoformat(payload["timestamp"]).astimezone(self._zone)
        only = bool(payload["flags"] & _EPHEMERAL)
        parts = [
            self._asked(*shown.asked) if shown.asked is not None else "",
            self._answered(shown.answers) if shown.answers is not None else "",
            f'<i class="face">{escape(author[:1])}</i><div><b class="who">{escape(author)}</b> ',
            '<span class="app">APP</span> ' if payload["author"].get("bot") else "",
            f"<time>{at:%H:%M}</time>",
            f'<div class="text">{self.text(payload["content"])}</div>' if payload["content"] else "",
            *(self._embed(each) for each in payload["embeds"]),
            *(self._row(row["components"]) for row in payload["components"]),
            '<p class="only">Only you can see this</p>' if only else "",
            "</div>",
        ]
        return f"<article{' class=only-you' if only else ''}>{''.join(parts)}</article>"

    def text(self, text: str) -> str:
        """Return a text with its Markdown."""
        kept: list[str] = []

        def keep(found: re.Match[str]) -> str:
            kept.append(escape(found[1]))
            return f"\0{len(kept) - 1}\0"

        def keep_code(found: re.Match[str]) -> str:
            kept.append(f"<pre>{escape(found[1])}</pre>")
            return f"\0{len(kept) - 1}\0"

        inner = escape(_LITERAL.sub(keep, _CODE.sub(keep_code, text.replace("\0", ""))))
        inner = _MENTION.sub(self._mention, inner)
        inner = _COMMAND.sub(r'<span class="mention">\1</span>', inner)
        inner = _TIME.sub(self._time, inner)
        for pattern, markup in _MARKDOWN:
            inner = pattern.sub(markup, inner)
        lines = [_ITEM.sub(r'<span class="item">\1</span>', line) for line in inner.split("\n")]
        written = "<br>".join(lines).replace('</span><br><span class="item">', '</span><span class="item">')
        return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], written)

    def _mention(self, found: re.Match[str]) -> str:
        return f'<span class="mention">@{escape(self._names.get(int(found[1]), "somebody"))}</span>'

    def _time(self, found: re.Match[str]) -> str:
        at = datetime.fromtimestamp(int(found[1]), self._zone)
        return f'<span class="time">{at.strftime(_TIMES.get(found[2] or "f", _TIMES["f"]))}</span>'

    @staticmethod
    def _asked(who: str, command: str) -> str:
        return f'<p class="asked"><b>{escape(who)}</b> used <span class="mention">/{escape(command)}</span></p>'

    def _answered(self, message: Json) -> str:
        author = escape(message["author"]["global_name"])
        return f'<p class="asked">↱ <b>{author}</b> {self.text(message["content"])}</p>'

    def _embed(self, embed: Json) -> str:
        fields = "".join(
            f'<div class="field{" inline" if each.get("inline") else ""}"><b>{self.text(each["name"])}</b>'
            f"<div>{self.text(each['value'])}</div></div>"
            for each in embed.get("fields") or []
        )
        title = f"<h3>{self.text(embed['title'])}</h3>" if embed.get("title") else ""
        text = f'<div class="text">{self.text(embed["description"])}</div>' if embed.get("description") else ""
        return f'<div class="embed">{title}{text}<div class="fields">{fields}</div></div>'

    def _row(self, parts: Sequence[Json]) -> str:
        drawn = "".join(
            self._menu(each)
            if "style" not in each
            else f'<span class="button {_BUTTONS[each["style"]]}">{escape(each["label"])}</span>'
            for each in parts
        )
        return f'<div class="buttons">{drawn}</div>'

    @staticmethod
    def _menu(menu: Json) -> str:
        """Return a menu as it is before somebody opens it: with what is chosen, or what it asks."""
        chosen = ", ".join(each["label"] for each in menu.get("options", ()) if each.get("default"))
        return f'<span class="menu">{escape(chosen or menu["placeholder"])}<b>⌄</b></span>'


_STYLE = """
* { box-sizing: border-box; margin: 0 }
body { background: #1e1f22; color: #dbdee1; font: 15px/1.4 "DejaVu Sans", "Noto Sans", sans-serif; width: 1280px }
main { display: grid; grid-template-columns: 1fr 1fr; gap: 2px }
section { background: #313338; min-height: 100% }
header { display: flex; gap: 12px; align-items: baseline; padding: 12px 18px; border-bottom: 1px solid #232428 }
header b { color: #f2f3f5 } header b::before { content: "♪ "; color: #949ba4 }
header span { color: #949ba4; font-size: 13px }
article { position: relative; padding: 12px 18px 6px 72px }
article.only-you { background: #36363d; border-left: 2px solid #5865f2 }
.face { position: absolute; left: 18px; width: 40px; height: 40px; border-radius: 50%; background: #5865f2; color: #fff;
  font: 600 19px/40px "DejaVu Sans", sans-serif; text-align: center }
.who { color: #f2f3f5 }
.app { background: #5865f2; color: #fff; font-size: 10px; font-weight: 600; border-radius: 3px; padding: 2px 4px;
  vertical-align: 2px }
time, .only { color: #949ba4; font-size: 12px }
.only { margin-top: 6px }
.asked { font-size: 13px; color: #b5bac1; margin: 0 0 6px } .asked b { color: #dbdee1 }
.mention { background: #3c4270; color: #c9cdfb; border-radius: 3px; padding: 0 2px; white-space: nowrap }
.time { background: #3f4147; border-radius: 3px; padding: 0 2px; white-space: nowrap }
.item { display: block; padding-left: 18px; position: relative }
.item::before { content: "•"; position: absolute; left: 4px }
.embed { background: #2b2d31; border-left: 4px solid #5865f2; border-radius: 4px; padding: 10px 14px 12px;
  margin-top: 6px; max-width: 520px; font-size: 14px }
.embed h3 { font-size: 15px; color: #f2f3f5; margin-bottom: 4px }
.fields { display: flex; flex-wrap: wrap; gap: 8px 18px }
.field { flex: 1 0 100%; margin-top: 4px } .field.inline { flex: 1 0 28% }
.field > b { color: #f2f3f5; font-size: 13px }
code { background: #1e1f22; border-radius: 3px; padding: 0 3px }
pre { background: #2b2d31; border: 1px solid #1e1f22; border-radius: 4px; padding: 8px 10px; margin: 4px 0;
  font: 13px/1.4 "DejaVu Sans Mono", monospace; max-width: 520px }
.menu { flex: 0 1 520px; display: flex; justify-content: space-between; background: #1e1f22; border-radius: 4px;
  padding: 8px 12px; font-size: 14px }
.buttons { display: flex; gap: 8px; margin-top: 8px }
.button { border-radius: 4px; padding: 6px 14px; font-size: 14px; font-weight: 600; color: #fff; background: #4e5058 }
.button.success { background: #248046 } .button.primary { background: #5865f2 } .button.danger { background: #da373c }
"""
