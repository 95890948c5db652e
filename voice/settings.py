"""What an operator can tune in `voice`; each field says its unit, its default's reason and when it takes effect."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator


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


class AsrSettings(BaseModel):
    """The speech recogniser. Every field takes effect when the process starts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["local", "endpoint"] = Field(
        default="local",
        description="Who recognises speech: local (the model in asr.model_dir; no sound leaves the machine), endpoint "
        "(asr.base_url: everybody's speech is sent there). Where the endpoint fails the local model takes over, if it "
        "is there.",
    )
    base_url: str = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/transcriptions, for example "
        "http://127.0.0.1:8000/v1; empty with asr.engine = endpoint means OpenAI itself.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where both are at the same address.",
    )
    model: str = Field(
        default="whisper-1",
        min_length=1,
        description="The endpoint's model. whisper-1 and other Whispers tell how sure they are and which language they "
        "heard, by which noise is told from speech; OpenAI's later ones tell less.",
    )
    timeout_s: float = Field(
        default=6.0,
        gt=0,
        le=120,
        description="Seconds that the endpoint may take over one utterance; then the local model hears it.",
    )
    model_dir: Path = Field(
        default=Path("data/models/whisper-base"),
        description="Directory of a CTranslate2 Whisper model; `roomtone models pull whisper` fills the default.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where the model runs; auto takes a CUDA device if there is one."
    )
    compute_type: str = Field(
        default="auto",
        pattern=r"^[a-z0-9_]+$",
        description="Number format, as CTranslate2 names it; auto is int8 on CPU and float16 on CUDA.",
    )
    cpu_threads: int = Field(
        default=2,
        ge=0,
        le=64,
        description="Threads of one recognition on CPU; 0 lets CTranslate2 choose. Two need half the time of one for a "
        "tenth more CPU; more gain little with a small model.",
    )
    language: str = Field(
        default="auto",
        pattern=r"^(auto|[a-z]{2,3})$",
        description="Language code that everybody speaks, for example en; auto detects it for each person.",
    )
    fallback_language: str = Field(
        default="en",
        pattern=r"^[a-z]{2,3}$",
        description="Language code assumed where detection is unsure, as on a first short word.",
    )
    beam_size: int = Field(
        default=1, ge=1, le=10, description="Hypotheses kept while decoding; 1 is the fastest and hardly worse on base."
    )
    queue_size: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="Recognitions that may wait. Over it, guesses at unfinished speech go, finished speech waits.",
    )
    compute_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Seconds in the model after which a recognition is given up and the model loaded anew.",
    )
    load_timeout_s: float = Field(default=120.0, gt=0, le=3600, description="Seconds that loading the model may take.")
    glossary_words: tuple[str, ...] = Field(
        default=(),
        description="Names and words that the recogniser is told to expect in every room, after the bot's names and "
        "those of the people present: what this community talks about and nobody else does.",
    )
    glossary_max_chars: int = Field(
        default=300,
        ge=0,
        le=800,
        description="Characters of names and words that the recogniser is told to expect; 0 tells it none.",
    )


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


class SpeakingSettings(BaseModel):
    """The bot's own voice. Every field takes effect when the bot next joins a channel, unless it says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: Literal["auto", "piper", "endpoint"] = Field(
        default="auto",
        description="Which voice speaks: piper (the embedded one), endpoint (speaking.base_url), auto (the endpoint if "
        "speaking.base_url or speaking.api_key is set, else the embedded one). Where the endpoint fails the embedded "
        "one takes over. Takes effect at start.",
    )
    base_url: str = Field(
        default="",
        description="URL of an endpoint that serves OpenAI's /audio/speech, for example http://127.0.0.1:8880/v1; "
        "empty with speaking.engine = endpoint means OpenAI itself. Takes effect at start.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where both are at the same address. Takes "
        "effect at start.",
    )
    model: str = Field(
        default="gpt-4o-mini-tts", min_length=1, description="The endpoint's speech model. Takes effect at start."
    )
    voice_name: str = Field(
        default="alloy", min_length=1, description="The endpoint's voice by name. Takes effect at start."
    )
    audio_format: Literal["pcm", "wav", "opus"] = Field(
        default="pcm",
        description="What sound the endpoint is asked for: pcm begins soonest and needs no decoding, opus is a tenth "
        "of the traffic. Whatever it sends is read. Takes effect at start.",
    )
    timeout_s: float = Field(
        default=8.0,
        gt=0,
        le=60,
        description="Seconds that the endpoint may take until a sentence begins to sound; then the embedded voice "
        "says it. Takes effect at start.",
    )
    stall_timeout_s: float = Field(
        default=2.0,
        gt=0,
        le=60,
        description="Seconds that the endpoint may hesitate in the middle of a sentence; then the embedded voice says "
        "the rest of it. What has come by then goes on sounding, so little of this is heard as a pause. Takes effect "
        "at start.",
    )
    speed: float = Field(
        default=1.0, ge=0.5, le=2, description="Pace of speech; 1 is the voice's own. Takes effect at start."
    )
    volume: float = Field(
        default=1.0,
        ge=0,
        le=4,
        description="Loudness of the bot's voice; 1 leaves it as the voice makes it, 0.5 halves it. What gets too loud "
        "is clipped.",
    )
    duck_after_s: float = Field(
        default=0.2,
        ge=0.05,
        le=5,
        description="Seconds that somebody speaks over the bot before it speaks more softly.",
    )
    duck_level: float = Field(
        default=0.3, ge=0, le=1, description="Loudness while somebody speaks over the bot; 1 is as loud as before."
    )
    stop_after_s: float = Field(
        default=0.7,
        ge=0.2,
        le=30,
        description="Seconds that somebody speaks over the bot before it falls silent. If it was no more than 'mm-hm' "
        "or a laugh it goes on where it was, else the rest is not said. Shorter: it yields to listeners' noises.",
    )
    blocked_words: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Words that the bot does not say aloud, by server id, or by `all` for every server: "
        '{ all = ["some phrase", "rude*"] }. Whole words, whatever their case; * stands for any letters. A sentence '
        "with one of them is left out, and people are told so in writing.",
    )
    moderation: Literal["off", "endpoint"] = Field(
        default="off",
        description="endpoint: every sentence is judged by the moderation API where the language model is "
        "(llm.base_url) before it is spoken; what is flagged, or cannot be judged, is not spoken. It costs each "
        "sentence a call of some 0.2 s. Takes effect at start.",
    )
    moderation_model: str = Field(
        default="omni-moderation-latest", min_length=1, description="The moderation model. Takes effect at start."
    )
    moderation_timeout_s: float = Field(
        default=3.0, gt=0, le=30, description="Seconds that one judgement may take. Takes effect at start."
    )
    pronunciations: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="How words are said that the voice gets wrong, by server id, or by `all` for every server: "
        '{ all = { Xiomara = "see oh mara" }, 123456789012345678 = { GG = "good game" } }. Whole words, whatever '
        "their case; a server's own go first. What is remembered keeps the word as it is written.",
    )

    @model_validator(mode="after")
    def _ducks_before_it_stops(self) -> SpeakingSettings:
        if self.duck_after_s > self.stop_after_s:
            raise ValueError(
                "duck_after_s must not be over stop_after_s, for example duck_after_s = 0.2 and stop_after_s = 0.7"
            )
        return self

    def blocked_in(self, guild_id: int) -> tuple[str, ...]:
        """Return the words that are not spoken in one server."""
        return tuple(word for place in ("all", str(guild_id)) for word in self.blocked_words.get(place, ()))

    def pronounced_in(self, guild_id: int) -> dict[str, str]:
        """Return the pronunciations of one server: word -> how it is said."""
        return {
            word.casefold(): said
            for place in ("all", str(guild_id))
            for word, said in self.pronunciations.get(place, {}).items()
        }


class RealtimeSettings(BaseModel):
    """Speech-to-speech: a model that hears and speaks itself, over OpenAI's Realtime protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=False,
        description="Answer by a speech-to-speech model instead of recogniser, language model and voice. It costs "
        "many times as much. When it fails the others take over. Takes effect at the next join.",
    )
    base_url: str = Field(
        default="",
        description="URL of an endpoint that speaks the Realtime protocol, for example http://127.0.0.1:8000/v1; "
        "empty means OpenAI itself. Takes effect at the next join.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="The endpoint's key; without it llm.api_key serves where realtime.base_url is empty. Takes effect "
        "at start.",
    )
    model: str = Field(
        default="gpt-realtime", min_length=1, description="The model's name. Takes effect at the next join."
    )
    transcription_model: str = Field(
        default="gpt-4o-mini-transcribe",
        min_length=1,
        description="What the endpoint writes down with what people say. Takes effect at the next join.",
    )
    voice: str = Field(default="marin", min_length=1, description="The voice's name. Takes effect at the next join.")
    mode: Literal["turns", "mixed"] = Field(
        default="turns",
        description="turns: each person's utterance is an input of its own, after their name, and the endpoint writes "
        "it down. mixed: what is said at once is heard as one sound after all their names, and the local recogniser "
        "writes it down for each person. Takes effect at the next join.",
    )
    session_s: float = Field(
        default=3_540.0,
        ge=30,
        le=7_200,
        description="Seconds after which the session is renewed, with the summary and the recent turns; a minute less "
        "than the service allows (OpenAI: 3600, some accounts 1800). Takes effect at the next join.",
    )
    renew_patience_s: float = Field(
        default=45.0,
        ge=0,
        le=600,
        description="Seconds that a due renewal waits for a moment in which nobody speaks. Takes effect at the next "
        "join.",
    )
    connect_timeout_s: float = Field(
        default=10.0, gt=0, le=60, description="Seconds that connecting may take. Takes effect at the next join."
    )
    hear_timeout_s: float = Field(
        default=8.0,
        gt=0,
        le=60,
        description="Seconds to wait for what was said in writing; then the local recogniser is asked. Takes effect at "
        "the next join.",
    )
    reply_timeout_s: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Seconds to wait for an answer's sound to begin or go on. Takes effect at the next join.",
    )
    failures_before_fallback: int = Field(
        default=3,
        ge=1,
        le=20,
        description="Failures in a row after which the room answers without it until the next join. Takes effect at "
        "the next join.",
    )


class ScreenSettings(BaseModel):
    """Watching the screens that people share with the bot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Let people share a screen with the bot by /watch. Nothing is watched until somebody does. Takes "
        "effect at the next /watch.",
    )
    reader: Literal["auto", "ocr", "model"] = Field(
        default="auto",
        description="What looks at a screen. ocr: its text is read on this machine. model: a vision model describes it "
        "(screen.model), and its text is read where the model fails. auto: the model if one is named, else ocr. Takes "
        "effect at start.",
    )
    model: str = Field(
        default="",
        description="The name of a model that takes pictures; each look costs a call of it, and the picture goes to "
        "its endpoint. Empty: none. Takes effect at start.",
    )
    base_url: str = Field(
        default="",
        description="URL of the vision model's OpenAI-compatible endpoint; empty means llm.base_url. Takes effect at "
        "start.",
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="The endpoint's key; without one llm.api_key serves where screen.base_url is empty. Takes effect "
        "at start.",
    )
    model_timeout_s: float = Field(
        default=15.0,
        gt=0,
        le=120,
        description="Seconds that one look of the vision model may take; then the screen's text is read instead. Takes "
        "effect at start.",
    )
    active_interval_s: float = Field(
        default=10.0,
        ge=2,
        le=600,
        description="Seconds between looks of the vision model while the screen changes. Default 10. A change of scene "
        "is looked at sooner. Takes effect at the next share.",
    )
    idle_interval_s: float = Field(
        default=30.0,
        ge=5,
        le=3600,
        description="Seconds between looks of the vision model while little changes; a screen that stands still is not "
        "looked at again. Takes effect at the next share.",
    )
    max_looks_per_hour: int = Field(
        default=400,
        ge=0,
        le=100_000,
        description="Most looks of the vision model in any hour, of all rooms together; then the screen's text is read "
        "instead. Default 400: one screen that moves all the time. 0 means no limit. Takes effect at start.",
    )
    busy_share: float = Field(
        default=0.3,
        ge=0.05,
        le=1,
        description="Share of one processor core (0-1) that reading text may take while screens keep changing. Default "
        "0.3: a new line is noted within a second or two and the rest is left for hearing. Takes effect at start.",
    )
    link_valid_s: float = Field(
        default=300.0,
        ge=30,
        le=3600,
        description="Seconds within which the link of /watch start has to be opened. Default 300. Takes effect at "
        "start.",
    )
    resume_within_s: float = Field(
        default=45.0,
        ge=5,
        le=600,
        description="Seconds for which a share waits for a page whose connection broke. Takes effect at the next "
        "share.",
    )
    max_shares: int = Field(
        default=4,
        ge=1,
        le=50,
        description="Most screens shared in one room at a time. Takes effect at the next /watch.",
    )
    commentary: bool = Field(
        default=True,
        description="Let the bot say something about a screen of its own accord, where it would also answer the room "
        "(brain settings and /talk). Takes effect at the next join.",
    )
    commentary_every_s: float = Field(
        default=15.0,
        ge=5,
        le=3600,
        description="Least seconds between two such remarks. Default 15. Takes effect at the next join.",
    )
    commentary_quiet_s: float = Field(
        default=2.2,
        ge=0.5,
        le=60,
        description="Seconds for which nobody has spoken before such a remark. Default 2.2. Takes effect at the next "
        "join.",
    )
