"""The sentences of `roomtone doctor --live`: what Discord itself did that a local test cannot show."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Any

from bot.cli.doctor.finding import Finding, Status
from bot.cli.output import count
from voice.transport.mls_kinds import BINARY_OPS, KNOWN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What this version of Roomtone knows. Everything else is worth a bug report.
KNOWN_MODES = frozenset({"aead_xchacha20_poly1305_rtpsize", "aead_aes256_gcm_rtpsize"})
_NEEDED_MODE = "aead_xchacha20_poly1305_rtpsize"


def live_findings(record: Mapping[str, Any]) -> list[Finding]:
    """Return what a record of `bot.discord.live_probe` says, most important first."""
    streams = record["streams"]
    return [
        _packets(record, streams),
        _connection(record),
        _keepalive(record),
        _modes(record),
        _encryption(record, streams),
        _padding(streams),
        _extensions(streams),
        _speaking(streams),
        _loss(record, streams),
        _unknown(record),
    ]


def _packets(record: Mapping[str, Any], streams: list[dict[str, Any]]) -> Finding:
    heard = sum(stream["packets"] for stream in streams)
    detail = f"{count(heard, 'packet')} of {count(len(streams), 'stream')} in {record['seconds']:g} s"
    if heard:
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


def _modes(record: Mapping[str, Any]) -> Finding:
    offered = record["modes_offered"]
    unknown = sorted(set(offered) - KNOWN_MODES)
    detail = f"{', '.join(offered) or 'none'} offered, {record['session'].get('mode', 'none')} used"
    if _NEEDED_MODE not in offered:
        return Finding("modes", Status.MISSING, detail, f"Roomtone needs {_NEEDED_MODE}: report this file as a bug.")
    if unknown:
        return Finding("modes", Status.WARNING, f"{detail}; unknown: {', '.join(unknown)}", _REPORT)
    return Finding("modes", Status.OK, detail)


def _encryption(record: Mapping[str, Any], streams: list[dict[str, Any]]) -> Finding:
    kinds = _sum(stream["kinds"] for stream in streams)
    version = record["session"].get("dave_protocol_version", "0")
    steps = ", ".join(f"op {each['op']} after {each['at_ms'] / 1000:.1f} s" for each in record["transitions"][:6])
    detail = (
        f"DAVE version {version}; {kinds['e']} encrypted, {kinds['s']} silence, "
        f"{kinds['c'] + kinds['t']} in the clear; transitions: {steps or 'none'}"
    )
    odd = version != "0" and kinds["c"]
    return Finding("encryption", Status.WARNING if odd else Status.OK, detail, _REPORT if odd else "")


def _padding(streams: list[dict[str, Any]]) -> Finding:
    padded = sum(sum(stream["padding_bytes"].values()) for stream in streams)
    packets = sum(stream["packets"] for stream in streams)
    empty = _sum(stream["kinds"] for stream in streams)["p"]
    share = padded / packets if packets else 0.0
    return Finding("padding", Status.OK, f"{share:.1%} of the packets padded, {empty} nothing but padding")


def _extensions(streams: list[dict[str, Any]]) -> Finding:
    layouts = _sum(stream["extensions"] for stream in streams)
    shown = ", ".join(f"{layout or 'none'} ({number})" for layout, number in layouts.most_common(5))
    return Finding("extensions", Status.OK, shown or "no packets")


def _speaking(streams: list[dict[str, Any]]) -> Finding:
    delays = sorted(each for stream in streams for each in stream["speaking_after_first_packet_ms"])
    if not delays:
        return Finding("speaking", Status.OK, "nobody was announced as speaking")
    typical = f"{median(delays):.0f} ms after the first packet (median of {len(delays)})"
    detail = f"announced {typical}, at most {delays[-1]:.0f} ms"
    late = delays[-1] > 500
    return Finding("speaking", Status.WARNING if late else Status.OK, detail)


def _loss(record: Mapping[str, Any], streams: list[dict[str, Any]]) -> Finding:
    packets, missing = (sum(stream[name] for stream in streams) for name in ("packets", "missing"))
    behind = sum(stream["behind"] for stream in streams)
    overflowed = record["counters"].get("overflowed", 0)
    share = missing / (packets + missing) if packets else 0.0
    detail = f"{share:.1%} missing, {behind} out of order, {overflowed} dropped by the system"
    if share > 0.02 or overflowed:
        return Finding(
            "loss", Status.WARNING, detail, "Look at the host's network, and at `receive buffer` in the doctor."
        )
    return Finding("loss", Status.OK, detail)


def _unknown(record: Mapping[str, Any]) -> Finding:
    """Name what this version does not know of the voice gateway's messages, and packets that are not sound."""
    binary = {name: sizes for name, sizes in record["binary_messages"].items() if name not in map(str, BINARY_OPS)}
    mls = {name: sizes for name, sizes in record["mls_messages"].items() if name not in KNOWN_KINDS}
    unknown = [
        *(f"op {name} {_sizes(sizes)}" for name, sizes in record["unknown_messages"].items()),
        *(f"binary op {name} {_sizes(sizes)}" for name, sizes in binary.items()),
        *(f"MLS: {name} {_sizes(sizes)}" for name, sizes in mls.items()),
    ]
    other = [f"{name} ({number})" for name, number in record["other_packets"].items()]
    if unknown:
        return Finding("unknown", Status.WARNING, ", ".join([*unknown, *other]), _REPORT)
    return Finding("unknown", Status.OK, f"other packets: {', '.join(other) or 'none'}; no unknown message")


def _sizes(sizes: Mapping[str, int]) -> str:
    return f"({sizes['count']}, at most {count(sizes['largest_bytes'], 'byte')})"


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


_REPORT = "Report this with the file: nothing in it says who was there or what was said."
