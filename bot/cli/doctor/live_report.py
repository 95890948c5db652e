"""The sentences of `roomtone doctor --live`: what Discord itself did that a local test cannot show."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.cli.output import count
from bot.discord.live_probe import CallStep, LiveRecord
from bot.discord.permissions import PERMISSIONS, WITHOUT

if TYPE_CHECKING:
    from collections.abc import Iterator


_REPORT = "Report this with the file: nothing in it says who was there or what was said."
# What a step that failed says, and what to do. The others end the test, and say it themselves.
_FAILED = {
    CallStep.COMMANDS: (
        "Discord knows none of the bot's",
        "Start the bot once with `roomtone run`, which registers them, and open the link of `roomtone invite` again.",
    ),
    CallStep.PERMISSIONS: (
        "the bot lacks {missing}",
        "Open the link of `roomtone invite` again, or look at the channel's.",
    ),
    CallStep.MODE: ("the voice server offers none that Roomtone knows", f"Update Roomtone. {_REPORT}"),
    CallStep.EPOCH: (
        "there were no keys for an end-to-end encrypted call",
        f"Let somebody with an up-to-date Discord be in the channel, and take one that is no stage. {_REPORT}",
    ),
    CallStep.HEARD: (
        "nobody was heard",
        "Let somebody speak in the channel while the test runs, and allow UDP to get out and in.",
    ),
    CallStep.SENT: (
        "nobody can have heard the tone",
        "Give the bot's role the permission Speak there, unmute it, and make it a speaker if it is a stage.",
    ),
    CallStep.CONFIRMED: (
        "nobody pressed the button",
        f"Let somebody in the channel listen for the tone, and press the button in its chat if it is there. {_REPORT}",
    ),
}
_WORKS = {
    CallStep.INTENTS: "Discord takes the token and the intents",
    CallStep.COMMANDS: "Discord knows {count}",
    CallStep.PERMISSIONS: "all that the invitation asks for",
    CallStep.VOICE_SERVER: "connected after {after_s:g} s",
    CallStep.MODE: "{mode}",
    CallStep.EPOCH: "end-to-end encrypted, in epoch {epoch}",
    CallStep.HEARD: "after {after_s:g} s",
    CallStep.SENT: "a tone",
    CallStep.CONFIRMED: "somebody pressed the button",
}


def live_findings(record: LiveRecord) -> list[Finding]:
    """Return what became of each step, and what the counts say."""
    return [*(_step(step, record) for step in CallStep if step in record.steps), *_counted(record)]


def _step(step: CallStep, record: LiveRecord) -> Finding:
    result = record.steps[step]
    if result["works"]:
        return Finding(step, Status.OK, _WORKS[step].format_map(result))
    ended = "error" in result
    if ended and step is not CallStep.MODE:
        told = Finding.told(step, Status.MISSING, record.problem)
        return told if told.remedy else replace(told, remedy=f"Mend that, and run the test again. {_REPORT}")
    detail, remedy = _FAILED[step]
    missing = (PERMISSIONS[name] for name in result.get("missing", ()))
    named = ", ".join(WITHOUT.fill(permission=name, use=use) for name, use in missing)
    return Finding(step, Status.MISSING if ended else Status.WARNING, detail.format(missing=named), remedy)


def _counted(record: LiveRecord) -> Iterator[Finding]:
    if record.packets is None:
        return
    packets = record.packets
    named = [f"{number} {kind}" for kind, number in packets.items() if number and kind not in {"received", "excluded"}]
    detail = f"{count(packets['received'], 'packet')} in {record.seconds:g} s, {packets['excluded']} with sound"
    yield Finding("packets", Status.OK, f"{detail}; others: {', '.join(named) or 'none'}")
    yield _connection(record)
    yield _keepalive(record.round_trips_ms)
    yield _loss(packets["overflowed"])


def _connection(record: LiveRecord) -> Finding:
    last, breaks = record.changes[-1], sum(each["change"] == "down" for each in record.changes)
    code = f" (close code {last['close_code']})" if last.get("close_code") else ""
    match last["change"]:
        case "removed":
            how = "Somebody took the bot out of the channel"
        case "ended":
            how = f"The voice server ended the connection{code}"
        case "silent":
            how = "The voice server stopped answering"
        case _ if not breaks:
            return Finding("connection", Status.OK, "held to the end")
        case "down":
            return Finding(
                "connection", Status.WARNING, f"broke after {last['after_s']:g} s and was not back at the end", _REPORT
            )
        case _:
            return Finding("connection", Status.WARNING, f"broke {count(breaks, 'time')} and came back")
    detail = f"{how} after {last['after_s']:g} s, and the test with it"
    remedy = "Run the test again." if last["change"] == "removed" else f"Run the test again. {_REPORT}"
    return Finding("connection", Status.WARNING, detail, remedy)


def _keepalive(answers: list[float]) -> Finding:
    if not answers:
        detail = "the voice server answered none of them, as some of Discord's do not"
        return Finding("keepalives", Status.OK, detail)
    typical = f"{median(answers):.1f} ms (median of {count(len(answers), 'answer')})"
    return Finding("keepalives", Status.OK, f"answered within {typical}, at most {max(answers):.1f} ms")


def _loss(overflowed: int) -> Finding:
    detail = f"{count(overflowed, 'packet')} dropped by this machine"
    if overflowed:
        return Finding("loss", Status.WARNING, detail, "Do what the log says at `receive_buffer_small`.")
    return Finding("loss", Status.OK, detail)
