"""Counts what an object holds, for bounds on memory that no public attribute shows."""

from __future__ import annotations

import gc
from types import FunctionType, MethodType, ModuleType


def held_objects(thing: object) -> int:
    """Return how many objects `thing` reaches, without code: what grows with each use shows in the number."""
    seen, waiting = dict[int, object](), [thing]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, (type, ModuleType, FunctionType, MethodType)):
            continue
        seen[id(each)] = each
        waiting += gc.get_referents(each)
    return len(seen)
