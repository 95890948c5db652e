"""Messages for tests of the budget."""

from __future__ import annotations

from hypothesis import strategies as st

from compaction.payload import MessageToolCall, PartKind, PayloadPart, make_part

WORDS = "word " * 40
NOW = 1_760_000_000.0
LISTING = "\n".join(f"src/app/module_{number}.py: 120 lines" for number in range(40))
SYSTEM = make_part("system", PartKind.SYSTEM, "You help.")


def said(content: str, *, role: str = "user", kind: PartKind = PartKind.TURN, at: float | None = None) -> PayloadPart:
    return make_part(role, kind, content, timestamp=at)


def ask(number: int) -> PayloadPart:
    """Return a message that a person said, a minute after the one before."""
    return said(f"ask {number} {WORDS}", at=NOW + 60 * number)


TALK = [SYSTEM, *(ask(number) for number in range(20))]


def use(name: str, arguments: str, output: str, *, call_id: str) -> list[PayloadPart]:
    """Return a call of a tool and its result."""
    call = MessageToolCall(call_id, name, arguments)
    return [
        make_part("assistant", PartKind.TOOL, "", tool_calls=(call,)),
        make_part("tool", PartKind.TOOL, output, tool_call_id=call_id, name=name),
    ]


def tool(number: int) -> list[PayloadPart]:
    """Return the call of a tool that reads no file, and its result."""
    return use("look", "{}", f"output {number} {WORDS}", call_id=f"call-{number}")


def read(path: str, content: str, *, call_id: str = "") -> list[PayloadPart]:
    """Return the call of a tool that reads a file, and the file."""
    return use("read_file", f'{{"path": "{path}"}}', content, call_id=call_id or path)


def answers(count: int) -> list[PayloadPart]:
    """Return so many answers of the model, each a step."""
    return [said(f"answer {number}", role="assistant") for number in range(count)]


def names(messages: list[PayloadPart]) -> list[str]:
    """Return the first two words of each turn and output, and the kind of all else."""
    shown = {PartKind.TURN, PartKind.TOOL}
    return [" ".join(each.content.split()[:2]) if each.kind in shown else each.kind.value for each in messages]


KINDS = {
    kind: said(f"{kind.value} … {WORDS}", kind=kind)
    for kind in PartKind
    if kind not in {PartKind.SYSTEM, PartKind.EVICTION_NOTE, PartKind.TURN, PartKind.TOOL, PartKind.CURRENT}
}


@st.composite
def conversations(draw: st.DrawFn) -> list[PayloadPart]:
    """Draw any conversation of prompts, talk, tool calls with results, and parts of a payload."""
    messages = [SYSTEM] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 14))):
        match draw(st.integers(0, 4)):
            case 0:
                messages += tool(number)
            case 1:
                messages += read(draw(st.sampled_from(["plan.md", "map.png"])), WORDS, call_id=f"read-{number}")
            case 2:
                messages.append(draw(st.sampled_from([ask(number), *KINDS.values()])))
            case 3:
                messages.append(said(draw(st.text(max_size=60)), role="assistant"))
            case _:
                messages.append(said(draw(st.text(max_size=300)), at=NOW + number))
    return messages
