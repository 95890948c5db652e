"""Which reader reads a screen, and the fallback if that reader fails."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from bot.llm.model_calls import OPERATOR, UNMETERED, Payer
from bot.llm.settings import LlmSettings
from bot.screen.readers import FIRST_OPEN_S, ScreenReaders, describe_reader, open_readers
from bot.texts.text import sentence_of
from compaction.settings import BudgetSettings
from tests.fakes.clock import FakeClock
from tests.patience import settle
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.ocr import OcrReader
from voice.screen.port import LatestRequest, NoPictureError, VisionError, VisionReading, VisionRequest, VisionSource
from voice.screen.settings import ScreenSettings

LOOK = VisionRequest(b"picture")
ASKED = VisionRequest(b"picture", question="Which map?")


class Stub(OcrReader):
    """A reader that counts its calls. `trouble`: the message of the error to raise, if any."""

    def __init__(self, source: VisionSource = VisionSource.OCR) -> None:
        super().__init__(clock=FakeClock())
        self.source = source
        self.trouble = ""
        self.asked: list[bool] = []

    async def read(self, latest: LatestRequest, *, urgent: bool = False, payer: Payer = OPERATOR) -> VisionReading:
        """Return a reading, or raise the error."""
        latest()
        self.asked.append(urgent)
        if self.trouble:
            raise VisionError(self.trouble)
        return VisionReading(self.source)


async def test_the_text_stands_in_for_a_model_that_fails() -> None:
    """If the model fails, OCR reads the picture, and the model is not asked for a while, longer each time."""
    clock = FakeClock()
    model, ocr = Stub(VisionSource.MODEL), Stub()
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=clock)
    assert (await readers.read(lambda: LOOK, payer=OPERATOR)).source is VisionSource.MODEL
    model.trouble = "It did not answer in time."
    for rest_s in (FIRST_OPEN_S, 2 * FIRST_OPEN_S):
        asked = len(model.asked)
        assert (await readers.read(lambda: LOOK, payer=OPERATOR, urgent=True)).source is VisionSource.OCR
        clock.advance(rest_s - 1)
        assert (await readers.read(lambda: LOOK, payer=OPERATOR)).source is VisionSource.OCR
        assert "in time" in readers.limitation(OPERATOR)
        assert len(model.asked) == asked + 1
        clock.advance(1)
    model.trouble = ""
    assert (await readers.read(lambda: LOOK, payer=OPERATOR)).source is VisionSource.MODEL
    assert readers.limitation(OPERATOR) == ""
    assert readers.by_model
    await readers.unload()


class Stalling(Stub):
    """A model that takes one picture at a time, and fails when the test says so."""

    def __init__(self) -> None:
        super().__init__(VisionSource.MODEL)
        self.turn = asyncio.Lock()
        self.fails = asyncio.Event()

    async def read(self, latest: LatestRequest, *, urgent: bool = False, payer: Payer = OPERATOR) -> VisionReading:
        """Wait, then fail."""
        async with self.turn:
            latest()
            self.asked.append(urgent)
            await self.fails.wait()
            raise VisionError("It did not answer in time.")


async def test_a_first_look_has_the_models_own_time() -> None:
    """A look without a question has the model's full time. A question meanwhile gets the OCR text, which is
    no failure.
    """
    model, ocr = Stalling(), Stub()
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=FakeClock(), urgent_timeout_s=0.01)
    first = asyncio.create_task(readers.read(lambda: LOOK, payer=OPERATOR, urgent=True))
    await settle(lambda: model.asked)
    assert (await readers.read(lambda: ASKED, payer=OPERATOR, urgent=True)).source is VisionSource.OCR
    assert readers.limitation(OPERATOR) == ""
    assert not first.done()
    model.fails.set()
    assert (await first).source is VisionSource.OCR


class WeakRequest(VisionRequest):
    """A request of which a test knows whether anything still refers to it."""


async def test_a_failure_keeps_no_picture() -> None:
    """The model's failure is remembered until it answers again, but not the picture that it had."""

    class Failing(Stub):
        async def read(self, latest: LatestRequest, *, urgent: bool = False, payer: Payer = OPERATOR) -> VisionReading:
            """Fail with the picture in a local variable."""
            look = latest()
            raise VisionError(f"It did not take {len(look.jpeg)} bytes.")

    readers = ScreenReaders(Stub(), FrameDecoder(), Failing(), clock=FakeClock())

    async def failed() -> weakref.ref[VisionRequest]:
        look = WeakRequest(b"picture")
        assert (await readers.read(lambda: look, payer=OPERATOR)).source is VisionSource.OCR
        return weakref.ref(look)

    kept = await failed()
    gc.collect()
    assert kept() is None
    assert "It did not take 7 bytes." in readers.limitation(OPERATOR)


async def test_one_outage_is_one_failure() -> None:
    """Looks that waited while the model failed get the OCR text, without asking the model and without a
    longer pause.
    """
    clock = FakeClock()
    model, ocr = Stalling(), Stub()
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=clock)
    looks = [asyncio.create_task(readers.read(lambda: LOOK, payer=OPERATOR)) for _ in range(4)]
    await settle(lambda: model.asked)
    model.fails.set()
    assert {(await look).source for look in looks} == {VisionSource.OCR}
    assert (len(model.asked), len(ocr.asked)) == (1, 4)
    clock.advance(FIRST_OPEN_S)
    assert readers.limitation(OPERATOR) == ""


async def test_an_hour_has_so_many_looks() -> None:
    """After the hourly limit of model looks, OCR reads until an hour after the first look."""
    clock, model, ocr = FakeClock(), Stub(VisionSource.MODEL), Stub()
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=clock, most_per_hour=2)
    for wait_s, source in (
        (0, VisionSource.MODEL),
        (10, VisionSource.MODEL),
        (10, VisionSource.OCR),
        (3_579, VisionSource.OCR),
        (1, VisionSource.MODEL),
        (5, VisionSource.OCR),
        (5, VisionSource.MODEL),
    ):
        clock.advance(wait_s)
        assert (await readers.read(lambda: LOOK, payer=OPERATOR)).source is source


async def test_a_picture_that_is_gone_is_no_failure_of_the_model() -> None:
    """A missing picture is not a failure of the model, does not count against the hourly limit, and is not
    read by OCR.
    """
    model, ocr = Stub(VisionSource.MODEL), Stub()
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=FakeClock(), most_per_hour=1)

    def gone() -> VisionRequest:
        raise NoPictureError("This screen is no longer shared.")

    with pytest.raises(NoPictureError, match="no longer shared"):
        await readers.read(gone, payer=OPERATOR)
    assert ocr.asked == []
    assert readers.limitation(OPERATOR) == ""
    assert (await readers.read(lambda: LOOK, payer=OPERATOR)).source is VisionSource.MODEL


def test_who_shares_is_told_who_looks() -> None:
    """The description says whether pictures stay on the bot's machine, or which model at which address gets them."""
    assert "The pictures go nowhere else" in describe_reader(ScreenSettings(), LlmSettings())
    eyes = ScreenSettings(model="eyes", base_url="https://models.example.org/v1")
    assert "eyes at models.example.org" in describe_reader(eyes, LlmSettings())
    assert "eyes at OpenAI" in describe_reader(ScreenSettings(model="eyes"), LlmSettings())


async def test_when_both_fail_it_is_told() -> None:
    """If the model and OCR both fail, the error names both, also while the model is not asked."""
    model, ocr = Stub(VisionSource.MODEL), Stub()
    model.trouble, ocr.trouble = "It did not answer.", "The reader is missing."
    readers = ScreenReaders(ocr, FrameDecoder(), model, clock=FakeClock())
    for _ in range(2):
        with pytest.raises(VisionError) as caught:
            await readers.read(lambda: LOOK, payer=OPERATOR)
        told = sentence_of(caught.value)
        assert "It did not answer." in told
        assert "The reader is missing." in told
    ocr.trouble = "missing"
    alone = ScreenReaders(ocr, FrameDecoder(), clock=FakeClock())
    assert not alone.by_model
    with pytest.raises(VisionError, match="missing"):
        await alone.read(lambda: LOOK, payer=OPERATOR)


@pytest.mark.parametrize(
    ("settings", "by_model"),
    [
        (ScreenSettings(), False),
        (ScreenSettings(model="eyes"), True),
        (ScreenSettings(model="eyes", base_url="http://127.0.0.1:1/v1"), True),
    ],
)
async def test_the_settings_choose(settings: ScreenSettings, by_model: bool) -> None:
    """The settings decide whether a model reads the screen; no reader is started before somebody shares."""
    opening = open_readers(settings, LlmSettings(), BudgetSettings(), clock=FakeClock(), meter=UNMETERED)
    async with opening as readers:
        assert readers.by_model is by_model
        await readers.unload()
