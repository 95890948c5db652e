"""The program that reads pictures in its own process. `voice.screen.ocr` starts it, sends requests and kills it.

It imports nothing of Roomtone, has no secrets and opens no network connection. Requests come on stdin: the length of a
header (four bytes, big-endian), the header (JSON: `boxes`), the length of a picture, the picture. Answers go to stdout:
a length and JSON. The program ends when stdin ends.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import time
from typing import IO, Any, Final

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


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Libraries print to stdout, so redirect stdout to stderr and keep the original stdout for the answers.
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    try:
        engine = _engine()
    except ImportError:
        _answer(answers, {"error": "missing"})
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, it must reach who started this
        _answer(answers, {"error": type(error).__name__})
        return
    _answer(answers, {"ready": True})
    while (header := _part(sys.stdin.buffer)) is not None and (picture := _part(sys.stdin.buffer)) is not None:
        try:
            began_s = time.process_time()
            lines = _read(engine, picture, json.loads(header)["boxes"])
            _answer(answers, {"lines": lines, "cpu_s": time.process_time() - began_s})
        except Exception as error:  # noqa: BLE001 - one picture's trouble is not the next one's
            _answer(answers, {"error": type(error).__name__})


def _engine() -> Any:
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    return RapidOCR(params=_PARAMETERS)


def _read(engine: Any, picture: bytes, boxes: list[list[float]]) -> list[list[object]]:
    """Return [text, left, top, right, bottom, score] of each line in the areas `boxes`, in fractions of the picture."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(picture), formats=["JPEG"]) as image:
        pixels = np.ascontiguousarray(np.asarray(image.convert("RGB"))[:, :, ::-1])
    height, width = pixels.shape[:2]
    lines: list[list[object]] = []
    for left, top, right, bottom in boxes:
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


def _part(requests: IO[bytes]) -> bytes | None:
    """Return one part of a request, or None at the end."""
    length = requests.read(_LENGTH.size)
    if len(length) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(length)[0]
    part = requests.read(size)
    return part if len(part) == size else None


def _answer(answers: IO[bytes], told: dict[str, object]) -> None:
    body = json.dumps(told).encode()
    answers.write(_LENGTH.pack(len(body)) + body)
    answers.flush()


if __name__ == "__main__":
    main()
