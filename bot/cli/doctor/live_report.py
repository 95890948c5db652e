"""The sentences of `roomtone doctor --live`: what Discord itself did that a local test cannot show."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from bot.cli.doctor.finding import Finding, Status
from bot.cli.output import count

if TYPE_CHECKING:
    from collections.abc import Mapping


def live_findings(record: Mapping[str, Any]) -> list[Finding]:
    """Return what the counts of `bot.discord.live_probe` say, most important first."""
    return [_packets(record), _connection(record), _keepalive(record), _encryption(record), _loss(record)]


def _packets(record: Mapping[str, Any]) -> Finding:
    counters = record["packets"]
    named = [f"{number} {kind}" for kind, number in counters.items() if number and kind not in {"received", "excluded"}]
    detail = f"{count(counters['received'], 'packet')} in {record['seconds']:g} s, {counters['excluded']} with sound"
    detail += f"; others: {', '.join(named) or 'none'}"
    if counters["excluded"]:
        return Finding("packets", Status.OK, detail)
    remedy = "Let somebody speak in the channel while the test runs, and allow UDP to get out and in."
    return Finding("packets", Status.WARNING, f"{detail}: nobody was heard", remedy)


def _connection(record: Mapping[str, Any]) -> Finding:
    changes = record["connection"]
    last, breaks = changes[-1], sum(each["change"] == "down" for each in changes)
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


def _keepalive(record: Mapping[str, Any]) -> Finding:
    answers = record["keepalive_round_trips_ms"]
    if not answers:
        detail = "the voice server answered none of them, as some of Discord's do not"
        return Finding("keepalives", Status.OK, detail)
    typical = f"{median(answers):.1f} ms (median of {count(len(answers), 'answer')})"
    return Finding("keepalives", Status.OK, f"answered within {typical}, at most {max(answers):.1f} ms")


def _encryption(record: Mapping[str, Any]) -> Finding:
    if record["end_to_end"]:
        return Finding("encryption", Status.OK, f"end to end, and {record['mode']} to the voice server")
    return Finding("encryption", Status.WARNING, f"not end to end; {record['mode']} to the voice server", _REPORT)


def _loss(record: Mapping[str, Any]) -> Finding:
    overflowed = record["packets"]["overflowed"]
    detail = f"{count(overflowed, 'packet')} dropped by this machine"
    if overflowed:
        return Finding("loss", Status.WARNING, detail, "Do what the log says at `receive_buffer_small`.")
    return Finding("loss", Status.OK, detail)


_REPORT = "Report this with the file: nothing in it says who was there or what was said."
