"""What an operator can tune in hearing speech begin and end: units, why the default, when a change takes effect."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ListeningSettings(BaseModel):
    """How a person's sound is cut into utterances. Every field takes effect when the bot next joins a channel."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    speech_on: float = Field(
        default=0.5, gt=0, lt=1, description="Speech begins at this voice-activity probability (0-1)."
    )
    speech_off: float = Field(
        default=0.35,
        gt=0,
        lt=1,
        description="Speech pauses below this probability (0-1); lower than speech_on, so it does not flicker.",
    )
    min_speech_s: float = Field(
        default=0.25,
        ge=0.03,
        le=2,
        description="Seconds of voiced sound before it counts as speech: a click or a cough is shorter.",
    )
    pre_roll_s: float = Field(
        default=0.3,
        ge=0,
        le=2,
        description="Seconds kept from before the first voiced sound: soft consonants come before it.",
    )
    end_silence_s: float = Field(
        default=0.7,
        ge=0.2,
        le=5,
        description="Seconds of silence that end an utterance where the end-of-turn model is off, absent or has no "
        "answer. 0.5 cuts 35 % of the pauses inside speech, 0.7 18 %, 1.0 3 %; the answer comes later by as much.",
    )
    turn_model: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: the end-of-turn model (`roomtone models pull turn`) is asked in each pause whether the "
        "person sounds finished, if it is there. off: silence alone decides.",
    )
    pause_s: float = Field(
        default=0.2,
        ge=0.1,
        le=1,
        description="Seconds of silence after which the end-of-turn model is asked and the recogniser may begin "
        "ahead. Under 0.2 every gap between words is a pause.",
    )
    finished_probability: float = Field(
        default=0.94,
        gt=0,
        lt=1,
        description="Over this probability (0-1) of the end-of-turn model the person counts as finished. It takes "
        "comma pauses for ends too: 0.95 cuts 7 % of the pauses inside speech, 0.94 8 %, 0.9 14 %.",
    )
    finished_silence_s: float = Field(
        default=0.5,
        ge=0.2,
        le=5,
        description="Seconds of silence that end the utterance of a person who sounds finished, as more than half of "
        "them do. 0.44 cuts 10 % of the pauses inside speech, 0.5 8 %; the answer comes later by as much.",
    )
    unfinished_silence_s: float = Field(
        default=1.0,
        ge=0.2,
        le=5,
        description="Seconds of silence that end the utterance of a person who does not sound finished.",
    )
    recognise_ahead: bool = Field(
        default=True,
        description="Begin to recognise in a pause, before it is sure that the person has finished; in vain when they "
        "go on. The text comes some 0.2 s sooner for up to half as much more CPU.",
    )
    tail_s: float = Field(
        default=0.2, ge=0, le=1, description="Seconds of sound kept after the last voiced one; at most end_silence_s."
    )
    max_utterance_s: float = Field(
        default=30.0,
        ge=5,
        le=30,
        description="Seconds after which an unbroken utterance is cut at its quietest point; the recogniser hears 30.",
    )
    moment_wait_s: float = Field(
        default=10.0,
        ge=0,
        le=60,
        description="Seconds that a finished utterance waits at most while others are in mid-sentence; then all that "
        "was said is one turn of the room. Who says the bot's name does not wait. 0: nobody waits.",
    )
    late_packets_s: float = Field(
        default=0.02,
        ge=0,
        le=1,
        description="Seconds of sound that may still be on its way (batching, a busy loop) when packets stop. Sound "
        "that comes later yet is not lost: it counts as said so much later. It adds to every latency.",
    )
    near_silence_rms: float = Field(
        default=0.003,
        ge=0,
        le=1,
        description="An utterance is dropped as near silence when its loudness (RMS; full scale is 1) is below this, "
        "and the two that follow agree.",
    )
    near_silence_peak: float = Field(
        default=0.012, ge=0, le=1, description="Near silence: its loudest sample is below this (full scale is 1)."
    )
    near_silence_active_ratio: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Near silence: less than this share of its samples is over half of near_silence_peak.",
    )

    @model_validator(mode="after")
    def _thresholds_are_ordered(self) -> ListeningSettings:
        if self.speech_off > self.speech_on:
            raise ValueError("speech_off must not be over speech_on, for example speech_on = 0.5 and speech_off = 0.35")
        if self.tail_s > self.end_silence_s:
            raise ValueError("tail_s must not be over end_silence_s, for example tail_s = 0.2 and end_silence_s = 0.7")
        if self.finished_silence_s > self.unfinished_silence_s:
            raise ValueError(
                "finished_silence_s must not be over unfinished_silence_s, "
                "for example finished_silence_s = 0.5 and unfinished_silence_s = 1.0"
            )
        return self
