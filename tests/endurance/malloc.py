"""What glibc's malloc has handed out: memory in use, without what the allocator or the system holds free."""

from __future__ import annotations

import ctypes


class _MallocFigures(ctypes.Structure):
    """`struct mallinfo2` (mallinfo(3)), summed over all arenas."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def allocated_mb() -> float | None:
    """Return the size of all blocks in use, small and large. None with another C library."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = _MallocFigures
    found = mallinfo2()
    return round(float(found.uordblks + found.hblkhd) / 2**20, 1)
