"""The pictures of the scenario `watched` are those that the script draws, and the share page could have sent them."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from PIL import Image

from rehearsal.scenarios.make_screens import FOLDER, SCREENS, draw_screen
from tests.voice.screen.screens import own_frame
from voice.screen.frame_diff import ChangeKind, compare_frames


@pytest.mark.parametrize("name", sorted(SCREENS))
def test_a_picture_is_what_is_drawn(name: str) -> None:
    """Each picture equals the drawing, except for JPEG artefacts, and the bot accepts it."""
    data = (FOLDER / name).read_bytes()
    frame = own_frame(data)
    assert (frame.width, frame.height) == (1280, 720)
    with Image.open(io.BytesIO(data)) as image:
        small = [np.asarray(each.convert("L").resize((64, 36)), int) for each in (image, draw_screen(SCREENS[name]))]
    assert np.abs(small[0] - small[1]).max() < 12


def test_each_picture_is_news() -> None:
    """The second picture differs from the first in its text, and the third shows another scene."""
    lumas = [own_frame((FOLDER / name).read_bytes()).luma for name in sorted(SCREENS)]
    changes = [compare_frames(before, after).change for before, after in itertools.pairwise(lumas)]
    assert changes[0] in {ChangeKind.TEXT, ChangeKind.VISUAL}
    assert changes[1] is ChangeKind.CUT
