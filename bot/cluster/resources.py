"""CPUs and GPUs in words, as the operator reads them. Pure."""

from __future__ import annotations


def cpus_in_words(number: float) -> str:
    """Return so many CPUs, or a part of one, in words."""
    return _count(number, "CPU")


def gpus_in_words(number: float) -> str:
    """Return so many GPUs, or a part of one, in words."""
    return _count(number, "GPU")


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'' if number == 1 else 's'}"
