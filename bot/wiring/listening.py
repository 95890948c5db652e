"""The two small models that hearing people needs, out of the models directory: speech or not, and finished or not.

Neither has to be there. Without the first one the copy that comes with the recogniser serves; without the second
a turn ends after a fixed silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.models.catalogue import TURN_SMART, VAD_SILERO
from bot.models.directory import ModelDirectory
from voice.listening.turn import SmartTurn, SmartTurnJudge, TurnModelError
from voice.listening.vad import SileroVad, StackedSileroVad, VadError

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from bot.settings import ModelsSettings
    from voice.listening.settings import ListeningSettings
    from voice.listening.turn import TurnJudge
    from voice.listening.vad import SpeechProbability

log = structlog.get_logger()


def open_detector(models: ModelsSettings) -> SpeechProbability:
    """Load the model that scores everybody in one call, else the one that comes along. Raises `VadError`."""
    shelf = ModelDirectory(models.directory)
    if shelf.holds(VAD_SILERO):
        try:
            return StackedSileroVad(shelf.path(VAD_SILERO) / VAD_SILERO.main_file.name)
        except VadError as error:
            log.warning("no_stacking_vad", problem=str(error))
    return SileroVad()


async def open_judge(stack: AsyncExitStack, models: ModelsSettings, listening: ListeningSettings) -> TurnJudge | None:
    """Load the end-of-turn model, which `stack` then owns; None if it is off, not there or not readable."""
    shelf = ModelDirectory(models.directory)
    if listening.turn_model == "off" or not shelf.holds(TURN_SMART):
        log.info("no_turn_model", setting=listening.turn_model)
        return None
    file = shelf.path(TURN_SMART) / TURN_SMART.main_file.name
    try:
        return await stack.enter_async_context(SmartTurnJudge(lambda: SmartTurn(file)))
    except TurnModelError as error:
        log.warning("no_turn_model", setting=listening.turn_model, problem=str(error))
        return None
