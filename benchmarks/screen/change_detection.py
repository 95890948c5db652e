"""Measures with labelled pairs of screens whether change detection tells relevant changes from irrelevant ones."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.screen.synthetic_screens import ScreenText, chat, hud, jpeg, own_frame, scene, written
from benchmarks.stats import share_of
from voice.screen.frame_diff import ChangeKind, compare_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.progress import Progress
    from benchmarks.report import Json

_SEEN = frozenset({ChangeKind.TEXT, ChangeKind.VISUAL, ChangeKind.CUT})


@dataclass(frozen=True, slots=True)
class ScreenTransition:
    """Two successive screens, the kind of change between them, and the verdicts that are right."""

    kind: str
    before: bytes
    after: bytes
    right: frozenset[ChangeKind]


def generate_transitions(scenes: int, seed: int) -> Iterator[ScreenTransition]:
    """Yield every kind of change for every scene."""
    for number in range(scenes):
        rng = random.Random(seed * 1_000 + number)  # noqa: S311 - pictures, no secret
        back = scene(number + seed, brightness=rng.choice((40, 90, 160)), unrest=rng.choice((0, 15, 30, 60)))
        texts = hud(rng)
        base = written(back, texts)
        first = jpeg(base)
        yield ScreenTransition("still", first, jpeg(base), frozenset({ChangeKind.SAME}))
        yield ScreenTransition("requantised", first, jpeg(base, quality=60), frozenset({ChangeKind.SAME}))
        yield ScreenTransition("cut", first, jpeg(_other(base, number)), frozenset({ChangeKind.CUT}))
        moved = Image.blend(base, base.transform(base.size, Image.Transform.AFFINE, (1, 0, 40, 0, 1, 12)), 0.9)
        yield ScreenTransition(
            "camera moves", first, jpeg(moved), _SEEN if _varies(back) else _SEEN | {ChangeKind.SAME}
        )
        for height in (16, 20, 28):
            figure = ScreenText(70, 560, height, "HP 87")
            yield ScreenTransition(
                f"figure of {height} points",
                jpeg(written(base, [figure])),
                jpeg(written(base, [ScreenText(70, 560, height, "HP 12")])),
                _SEEN,
            )
            line = ScreenText(rng.randint(40, 700), rng.randint(400, 540), height, chat(rng))
            yield ScreenTransition(f"chat line of {height} points", first, jpeg(written(base, [line])), _SEEN)
        yield ScreenTransition("menu opens", first, jpeg(_menu(base)), _SEEN)


def measure_change_detection(scenes: int, seed: int, progress: Progress) -> dict[str, Json]:
    """Return the share of right verdicts, in total and for each kind of change."""
    pairs = list(generate_transitions(scenes, seed))
    progress.step("gate", total=len(pairs))
    tried, right = Counter[str](), Counter[str]()
    for each in pairs:
        verdict = compare_frames(own_frame(each.before).luma, own_frame(each.after).luma)
        tried[each.kind] += 1
        right[each.kind] += verdict.change in each.right
        progress.advance()
    kinds: dict[str, Json] = {kind: share_of(right[kind], tried[kind]) for kind in tried}
    return {"transitions": len(pairs), "right": share_of(right.total(), tried.total()), "right_by_kind": kinds}


def _other(base: Image.Image, seed: int) -> Image.Image:
    """Return another scene that is clearly darker or lighter."""
    light = float(np.asarray(base.convert("L")).mean()) > 100
    return scene(seed + 500, brightness=30 if light else 190, unrest=30)


def _varies(back: Image.Image) -> bool:
    return float(np.asarray(back.convert("L")).std()) > 3


def _menu(base: Image.Image) -> Image.Image:
    copy = base.copy()
    ImageDraw.Draw(copy).rectangle((440, 180, 840, 540), fill=(24, 26, 32))
    return written(
        copy, [ScreenText(500, 220 + 60 * row, 28, words) for row, words in enumerate(("Resume", "Settings", "Quit"))]
    )
