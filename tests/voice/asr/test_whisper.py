"""Whisper recognises sentences, one or several at once, and reports clearly why a model cannot be loaded."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from hypothesis import given
from hypothesis import strategies as st

from tests.voice.recordings import BICYCLE_TEXT, bicycle, silence
from voice.asr import whisper
from voice.asr.glossary import choose_glossary
from voice.asr.port import LanguageHint, RecognitionRequest, UsualLanguage
from voice.asr.settings import AsrSettings
from voice.asr.whisper import BEAM_SIZE, BEAM_WITHIN_S, MOST_PROMPT_TOKENS, WhisperEngine
from voice.asr.worker import MAX_TOKENS, encoder_window_s, fit_together, token_cap
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError

SETTINGS = AsrSettings()


def test_a_sentence_is_heard_word_for_word(engine: WhisperEngine) -> None:
    """A clear sentence of 3 s is recognised word for word with the short encoder window."""
    heard = engine.recognise(RecognitionRequest(bicycle(), language="en"))
    assert heard.text == BICYCLE_TEXT
    assert heard.mean_logprob > -0.5
    assert heard.language_probability == 1.0


def test_unsure_detection_takes_the_fallback(engine: WhisperEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence gets the language that is assumed then, with a low probability."""
    monkeypatch.setattr(whisper, "UNSURE_LANGUAGE", "de")
    heard = engine.recognise(RecognitionRequest(silence(1)))
    assert heard.language == "de"
    assert heard.language_probability < 0.7


@pytest.mark.parametrize(
    ("usual", "heard_in"),
    [
        pytest.param(UsualLanguage("de"), "en", id="surely English"),
        pytest.param(UsualLanguage("de", ("de", "en")), "en", id="which is spoken there"),
        pytest.param(UsualLanguage("de", ("de",)), "de", id="nothing else is spoken there"),
        pytest.param("de", "de", id="everybody speaks German"),
    ],
)
def test_another_language_than_usual_is_heard_where_it_is_sure(
    engine: WhisperEngine, usual: LanguageHint, heard_in: str
) -> None:
    """Somebody who spoke German so far says an English sentence."""
    assert engine.recognise(RecognitionRequest(bicycle(), language=usual)).language == heard_in


def test_an_unsure_language_is_no_other_one(engine: WhisperEngine) -> None:
    """Silence is heard in the language that somebody spoke so far."""
    assert engine.recognise(RecognitionRequest(silence(1), language=UsualLanguage("de"))).language == "de"


@pytest.mark.parametrize(("languages", "heard_in"), [(("de", "en"), "en"), (("de", "es"), None), (("fr",), "fr")])
def test_a_language_is_chosen_among_those_that_are_spoken(
    engine: WhisperEngine, languages: tuple[str, ...], heard_in: str | None
) -> None:
    """Nobody is heard in another language, however likely it is; the probability is that among the named ones."""
    heard = engine.recognise(RecognitionRequest(bicycle(), language=languages))
    assert heard.language in ({heard_in} if heard_in else set(languages))
    assert heard.language_probability >= (0.9 if heard_in else 0.5)


def test_only_what_is_recognised_alone_is_decoded_with_several_hypotheses(
    engine: WhisperEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sound is decoded once: with one hypothesis if it is long, careful, together with others, or others wait."""
    generate, beams = ctranslate2.models.Whisper.generate, list[int]()

    def counted(model: ctranslate2.models.Whisper, *args: Any, beam_size: int, **options: Any) -> Any:
        beams.append(beam_size)
        return generate(model, *args, beam_size=beam_size, **options)

    monkeypatch.setattr(ctranslate2.models.Whisper, "generate", counted)
    engine.recognise(RecognitionRequest(bicycle(), language="en"))
    assert beams == [BEAM_SIZE]
    alone = RecognitionRequest(bicycle(), "en", ())
    engine.recognise_together([alone] * 2)
    engine.recognise_together([alone], others=[alone])
    engine.recognise_together([replace(alone, careful=True)])
    engine.recognise(
        RecognitionRequest(np.resize(bicycle(), round((BEAM_WITHIN_S + 1) * LISTEN_RATE_HZ)), language="en")
    )
    assert beams == [BEAM_SIZE, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("threads", "most_loaded_twice", "copies"),
    [
        pytest.param(2, 200_000_000, [2, 1], id="a small model"),
        pytest.param(1, 200_000_000, [1], id="one thread anyhow"),
        pytest.param(2, 10_000_000, [2], id="a large model, whose memory is not taken twice"),
    ],
)
def test_a_small_model_decodes_in_one_thread(
    whisper_model_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    most_loaded_twice: int,
    copies: list[int],
) -> None:
    """With a second copy. A large model has one copy, and so has one that may use one thread."""
    load, loaded = ctranslate2.models.Whisper, list[int]()

    def counted(*args: Any, intra_threads: int, **options: Any) -> ctranslate2.models.Whisper:
        loaded.append(intra_threads)
        return load(*args, intra_threads=intra_threads, **options)

    monkeypatch.setattr(ctranslate2.models, "Whisper", counted)
    monkeypatch.setattr(whisper, "MOST_LOADED_TWICE_BYTES", most_loaded_twice)
    WhisperEngine(whisper_model_dir, SETTINGS, threads=threads)
    assert loaded == copies


@pytest.mark.parametrize("letters", ["abc", "གངས་རི"])
def test_a_crowd_of_any_script_leaves_the_bots_name_in_the_prompt(
    engine: WhisperEngine, monkeypatch: pytest.MonkeyPatch, letters: str
) -> None:
    """However many tokens a script takes, the prompt begins with the bot's name, and is none that Whisper cuts."""
    names = ["".join(letters[(number + at) % len(letters)] for at in range(9)) + str(number) for number in range(60)]
    glossary = choose_glossary(wake_names=["Roomtone"], display_names=names, words=[])
    tokens: list[int] = []
    words: list[str] = []

    def kept(model: WhisperModel, _: Tokenizer, before: list[int], *, without_timestamps: bool) -> None:
        tokens[:] = before
        words.append(model.hf_tokenizer.decode(before))
        raise ValueError(without_timestamps)

    monkeypatch.setattr(WhisperModel, "encode", lambda *_: None)
    monkeypatch.setattr(WhisperModel, "get_prompt", kept)
    with pytest.raises(RecogniserError):
        engine.recognise(RecognitionRequest(silence(1), language="en", glossary=glossary))
    assert 50 < len(tokens) <= MOST_PROMPT_TOKENS
    assert words[0].startswith(" Glossary: Roomtone, ")


def test_sentences_that_are_heard_together_are_heard_as_alone(engine: WhisperEngine) -> None:
    """Each has its own text, language, glossary and figures, in the order of the requests."""
    alone = engine.recognise(RecognitionRequest(bicycle(), language="en", glossary=("Roomtone", "Valheim")))
    requests = [
        RecognitionRequest(bicycle(), "en", ("Roomtone", "Valheim")),
        RecognitionRequest(silence(3), None, ("Roomtone",)),
        RecognitionRequest(bicycle(), None, ("Roomtone", "Valheim", "Xiomara", "Berlin")),
    ]
    first, quiet, last = engine.recognise_together(requests)
    assert first.text == last.text == alone.text
    assert first.mean_logprob == pytest.approx(alone.mean_logprob, abs=0.02)
    assert (first.language_probability, last.language) == (1.0, "en")
    assert 0.5 < last.language_probability < 1.0
    assert quiet.no_speech_probability > first.no_speech_probability
    assert [each.duration_s for each in (first, quiet, last)] == [len(each.pcm) / 16_000 for each in requests]


def test_a_language_that_the_model_does_not_know_is_detected(engine: WhisperEngine) -> None:
    """An endpoint with a larger model may have detected a language that this model lacks; the words are heard."""
    together = [RecognitionRequest(bicycle(), language, ()) for language in ("yue", "en")]
    assert [(heard.text, heard.language) for heard in engine.recognise_together(together)] == [(BICYCLE_TEXT, "en")] * 2


@pytest.mark.parametrize(
    ("settings", "multilingual", "refused"),
    [
        # If everybody speaks what the model does not know, it says so when it is loaded. Behind an endpoint it hears.
        (AsrSettings(languages=("xx",)), True, "'xx'; leave it out of asr.languages"),
        (AsrSettings(languages=("xx",), base_url="http://127.0.0.1:9/v1"), True, ""),
        # An English model would hear everybody's German as English.
        (AsrSettings(languages=("de",)), False, "'de'"),
        (AsrSettings(languages=("en",)), False, ""),
    ],
)
def test_a_language_that_nobody_can_be_heard_in_is_refused_at_the_start(
    whisper_model_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: AsrSettings,
    multilingual: bool,
    refused: str,
) -> None:
    monkeypatch.setattr("ctranslate2.models.Whisper.is_multilingual", multilingual)
    hearing = pytest.raises(RecogniserError, match=f"language {refused}")
    with hearing if refused else contextlib.nullcontext():
        WhisperEngine(whisper_model_dir, settings, stands_in=True)


def test_a_missing_model_says_how_to_get_one(tmp_path: Path) -> None:
    """The error for a missing model names the path, the problem and the command that fetches the model."""
    nowhere = tmp_path / "nowhere"
    with pytest.raises(RecogniserError) as raised:
        WhisperEngine(nowhere, SETTINGS)
    assert str(nowhere) in str(raised.value)
    assert "config.json" in str(raised.value)
    assert "roomtone models pull whisper" in str(raised.value)


def _lasting(seconds: float) -> RecognitionRequest:
    return RecognitionRequest(np.zeros(round(seconds * LISTEN_RATE_HZ), np.int16), "en", ())


@pytest.mark.parametrize(
    ("first_s", "other_s", "fit"),
    [(0.5, 2.0, True), (2.0, 3.9, False), (2.1, 3.9, True), (3.0, 8.0, False), (25.0, 40.0, True), (1.0, 29.0, False)],
)
def test_sounds_of_like_length_fit_together(first_s: float, other_s: float, fit: bool) -> None:
    """The window counts, and the shortest and the longest sounds have the same one."""
    assert fit_together(_lasting(first_s), _lasting(other_s)) is fit
    assert fit_together(_lasting(other_s), _lasting(first_s)) is fit


def test_careful_hearings_and_those_without_a_glossary_stay_apart() -> None:
    """The one has another window and more hypotheses, the other nothing that comes before the text."""
    plain = _lasting(3.0)
    with_words = replace(plain, glossary=("Roomtone",))
    careful = replace(plain, careful=True)
    assert fit_together(with_words, replace(plain, language=None, glossary=("Valheim", "Xiomara")))
    assert not fit_together(plain, with_words)
    assert not fit_together(plain, careful)
    assert not fit_together(careful, careful)


@pytest.mark.parametrize(
    ("duration_s", "window_s", "most_tokens"),
    [
        (0.0, 8.0, 12),
        (1.0, 8.0, 20),
        (2.0, 8.0, 28),
        (3.0, 9.0, 36),
        (6.72, 12.8, 66),
        (24.0, 30.0, 204),
        (30.0, 30.0, 252),
        (45.0, 30.0, 252),
    ],
)
def test_window_by_duration(duration_s: float, window_s: float, most_tokens: int) -> None:
    """The window is the speech and 6 s more, between 8 s and 30 s; the cap is 12 tokens and 8 more for each second."""
    assert (encoder_window_s(duration_s), token_cap(duration_s)) == (window_s, most_tokens)


@given(st.floats(0, 100))
def test_the_window_holds_the_speech(duration_s: float) -> None:
    """The window holds the speech up to 30 s, the cap fits the model, and the encoder gets an even number of frames."""
    window_s = encoder_window_s(duration_s)
    assert window_s >= min(duration_s, 30.0)
    assert token_cap(duration_s) <= MAX_TOKENS
    assert round(window_s * 100) % 2 == 0
