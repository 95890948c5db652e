"""What an operator can tune in the connection to Discord: units, why the default, and when a change takes effect."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class TransportSettings(BaseModel):
    """The voice connection to Discord. Every field takes effect when the bot next joins a channel."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect_timeout_s: float = Field(
        default=30.0, ge=1, le=300, description="Seconds that joining a voice channel may take before it is given up."
    )
    give_up_after_s: float = Field(
        default=300.0,
        ge=0,
        le=86_400,
        description="Seconds for which a lost connection is tried again before the room is left for good.",
    )
    jitter_hold_s: float = Field(
        default=0.06,
        ge=0,
        le=0.5,
        description="Seconds that a missing packet is waited for. Sound in order never waits; less loses packets "
        "that were only overtaken.",
    )
    talkspurt_silence_s: float = Field(
        default=0.2, ge=0.06, le=2, description="Seconds without a packet after which a person counts as silent."
    )
    max_concealed_frames: int = Field(
        default=5,
        ge=1,
        le=10,
        description="Frames of 20 ms invented in one gap at most; longer invention sounds like words that nobody said.",
    )
    batch_s: float = Field(
        default=0.02,
        ge=0,
        le=0.2,
        description="Seconds of sound handed on at once; more saves CPU in rooms with many speakers, and comes later.",
    )
    max_waiting_s: float = Field(
        default=10.0,
        ge=0.5,
        le=120,
        description="Seconds of sound, over all speakers, that may wait for a busy process; the oldest goes first.",
    )
    dave_failures_before_recovery: int = Field(
        default=36,
        ge=5,
        le=1000,
        description="Frames of one person in a row that cannot be decrypted before the encrypted group is joined anew.",
    )
    deaf_after_s: float = Field(
        default=3.0,
        ge=1,
        le=60,
        description="Seconds after which a person who is announced as speaking and not heard raises an alarm.",
    )
    opus_bitrate_bps: int = Field(
        default=64_000,
        ge=8_000,
        le=256_000,
        description="Bits a second of the bot's own voice; 64000 is what Discord's channels carry by default. In a "
        "channel that is set to less, it is less.",
    )
    opus_complexity: int = Field(
        default=5,
        ge=0,
        le=10,
        description="Effort of encoding the bot's voice, 0-10; 10 costs twice the CPU of 5, for "
        "a difference that few hear in speech.",
    )
    opus_expected_loss_percent: int = Field(
        default=10,
        ge=0,
        le=50,
        description="Percent of packets expected to be lost, against which the bot's voice is coded: each packet then "
        "carries a rough copy of the one before it. 0 sends none, and costs a third less CPU.",
    )
