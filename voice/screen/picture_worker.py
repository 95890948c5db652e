"""The program that decodes pictures in its own process. `voice.screen.worker_process` starts, asks and kills it.

It imports nothing of Roomtone, has no secrets and opens no network connection. With the argument `text` it reads the
text of pictures, in the areas `boxes`. With `luma` it makes the small grey copy for change detection. Each request
comes on stdin: the lengths of its two parts (four bytes each, big-endian), JSON, and the picture. Answers go to stdout:
a length and JSON. The program ends when stdin ends.
"""

from __future__ import annotations

import base64
import io
import json
import os
import resource
import struct
import sys
import time
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Left, top, right and bottom, in fractions of the picture.
    PixelBox: TypeAlias = list[float]
    # Gets the areas to read and the picture, and returns the answer.
    PictureHandler: TypeAlias = Callable[[Sequence[PixelBox], bytes], dict[str, object]]

_LENGTHS: Final = struct.Struct(">II")
_LENGTH: Final = struct.Struct(">I")
# Reading has a lower priority than speech.
_NICENESS: Final = 5
_PARAMETERS: Final = {
    "Global.use_cls": False,  # screens stand upright
    "Global.log_level": "critical",
    # Pictures already have the right size. Enlarging small parts would take 25 times as long and give worse results.
    "Det.limit_type": "max",
    "Det.limit_side_len": 1280,
    # Use one core, and leave the others to speech recognition.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}
# A line is scaled to the height of the model, and reading it takes time in proportion to its width then. A full screen
# of usual text has 50,000 columns, which take two seconds of a busy core. A page of small print has a million.
_MODEL_HEIGHT: Final = 48
_LEAST_COLUMNS: Final = 320
MOST_COLUMNS: Final = 150_000
# On a busy machine it ends earlier: what was read is told before the process counts as hung (`voice.screen.ocr`).
READ_S: Final = 5.0
# The size of the grey copy (`voice.screen.frame`).
_LUMA_SIZE: Final = (320, 180)
# Decoding a picture of 1280x1280 takes 10 MB, besides 150 MB of address space for Python and Pillow.
_LUMA_ADDRESS_SPACE_BYTES: Final = 512 * 1024 * 1024


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Libraries print to stdout, so redirect stdout to stderr and keep the original stdout for the answers.
    os.dup2(2, 1)
    os.nice(_NICENESS)
    reads_text = sys.argv[1:] == ["text"]
    try:
        handle = _text_reader() if reads_text else _luma
    except Exception as error:  # noqa: BLE001 - whatever it is, it must reach who started this
        _answer(answers, {"error": type(error).__name__})
        return
    _limit(None if reads_text else _LUMA_ADDRESS_SPACE_BYTES)
    _answer(answers, {"ready": True})
    while (request := _request(sys.stdin.buffer)) is not None:
        try:
            began_s = time.process_time()
            _answer(answers, handle(*request) | {"cpu_s": time.process_time() - began_s})
        except Exception as error:  # noqa: BLE001 - one picture's trouble is not the next one's
            _answer(answers, {"error": type(error).__name__})


def _limit(address_space_bytes: int | None) -> None:
    """Forbid this process to write files and core dumps, and to take more memory than a picture needs."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    if address_space_bytes is not None:
        limits[resource.RLIMIT_AS] = address_space_bytes
    for limit, value in limits.items():
        resource.setrlimit(limit, (value, value))


def decode_luma(picture: bytes) -> bytes:
    """Return the grey copy of a picture, one byte for each pixel, in rows. Raises any error for a hostile picture."""
    with Image.open(io.BytesIO(picture), formats=["JPEG"]) as image:
        # Decode at an eighth, a quarter or a half of the size, whichever is the smallest that is still large enough.
        # This takes a quarter of the time.
        image.draft("L", _LUMA_SIZE)
        image.load()
        return image.convert("L").resize(_LUMA_SIZE, Image.Resampling.BOX).tobytes()


def _luma(_boxes: Sequence[PixelBox], picture: bytes) -> dict[str, object]:
    return {"luma": base64.b64encode(decode_luma(picture)).decode()}


def _text_reader() -> PictureHandler:
    """Load the model and return what reads a picture with it."""
    engine = new_engine()
    return lambda boxes, picture: {"lines": read_lines(engine, picture, boxes)}


def new_engine() -> Any:
    """Load the model that reads text, bounded."""
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    engine: Any = RapidOCR(params=_PARAMETERS)
    # It finds the lines of a picture and calls this with all of them.
    engine.recognize_txt = BoundedRecogniser(engine)
    return engine


class BoundedRecogniser:
    """Reads as many lines of a picture as there is time for, first those that take the least: large and short ones.

    `engine`: RapidOCR's, whose own way to read lines this takes. What is left out is read as empty.
    """

    def __init__(self, engine: Any, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._recognise = engine.recognize_txt
        self._monotonic = monotonic
        self._columns_left = 0.0
        self._until = 0.0

    def begin(self) -> None:
        """Begin another picture."""
        self._columns_left = MOST_COLUMNS
        self._until = self._monotonic() + READ_S

    @property
    def is_over(self) -> bool:
        """Return whether there is no time for more lines of this picture."""
        return self._columns_left <= 0 or self._monotonic() >= self._until

    def __call__(self, images: list[Any]) -> Any:
        """Return the lines in the order of their `images`; at least one of them is read."""
        columns = [_columns(image) for image in images]
        read: dict[int, Any] = {}
        for number in sorted(range(len(images)), key=lambda each: columns[each]):
            if read and self.is_over:
                break
            self._columns_left -= columns[number]
            # One at a time: several long ones together take up to twice the time.
            read[number] = self._recognise([images[number]])
        any_of_them = next(iter(read.values()))
        found = [read.get(number) for number in range(len(images))]
        return replace(
            any_of_them,
            imgs=images,
            txts=tuple("" if each is None else each.txts[0] for each in found),
            scores=tuple(0.0 if each is None else each.scores[0] for each in found),
            word_results=(None,) * len(images),
        )


def _columns(image: Any) -> float:
    """Return how wide the picture of a line is in the model's height."""
    height, width = image.shape[:2]
    return float(max(_LEAST_COLUMNS, _MODEL_HEIGHT * width / height))


def read_lines(engine: Any, picture: bytes, boxes: Sequence[PixelBox]) -> list[list[object]]:
    """Return [text, left, top, right, bottom, score] of each line in the areas `boxes`, in fractions of the picture. Of
    more text than there is time for, the rest is left out.
    """
    import numpy as np

    with Image.open(io.BytesIO(picture), formats=["JPEG"]) as image:
        pixels = np.ascontiguousarray(np.asarray(image.convert("RGB"))[:, :, ::-1])
    height, width = pixels.shape[:2]
    lines: list[list[object]] = []
    engine.recognize_txt.begin()
    for left, top, right, bottom in boxes:
        if engine.recognize_txt.is_over:
            break
        x, y = int(left * width), int(top * height)
        part = pixels[y : max(y + 1, round(bottom * height)), x : max(x + 1, round(right * width))]
        found = engine(part)
        if found.txts is None:
            continue
        for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True):
            xs, ys = corners[:, 0] + x, corners[:, 1] + y
            lines.append(
                [
                    str(text),
                    float(xs.min()) / width,
                    float(ys.min()) / height,
                    float(xs.max()) / width,
                    float(ys.max()) / height,
                    float(score),
                ]
            )
    return lines


def _request(requests: IO[bytes]) -> tuple[list[PixelBox], bytes] | None:
    """Return the areas and the picture of the next request, or None at the end."""
    lengths = requests.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_bytes, picture_bytes = _LENGTHS.unpack(lengths)
    header, picture = requests.read(header_bytes), requests.read(picture_bytes)
    return (json.loads(header)["boxes"], picture) if len(picture) == picture_bytes else None


def _answer(answers: IO[bytes], message: dict[str, object]) -> None:
    body = json.dumps(message).encode()
    answers.write(_LENGTH.pack(len(body)) + body)
    answers.flush()


if __name__ == "__main__":
    main()
