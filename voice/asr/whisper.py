"""Whisper on CTranslate2, for one utterance or a few of like length: short encoder window, no timestamps.

`WhisperEngine` blocks while it computes and belongs to one thread (`voice.asr.scheduler` gives it one). Set
OMP_NUM_THREADS=1 before numpy is imported anywhere: otherwise numpy's threads spin beside the model's, which costs a
third of a recognition's CPU time. Set ONEDNN_PRIMITIVE_CACHE_CAPACITY=16 as well: CTranslate2's library otherwise keeps
compiled code for every length of speech it has met.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens

from voice.asr.glossary import glossary_prompt
from voice.asr.guards import compression_ratio, remove_repetition
from voice.asr.placement import CPU, CudaFallback, DevicePlacement, supported
from voice.asr.port import LanguageHint, Recognition, RecognitionRequest, UsualLanguage, expected_language
from voice.asr.tokenizer import whole_tokenizer
from voice.asr.worker import FULL_WINDOW_S, MAX_TOKENS, Engine, encoder_window_s, token_cap
from voice.audio import INT16_FULL_SCALE, LISTEN_RATE_HZ, Pcm, duration_s
from voice.errors import RecogniserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized
    from pathlib import Path

    from voice.asr.settings import AsrSettings

FRAMES_PER_S = 100
# Of 89 English utterances, 3 were taken for another language, with 0.29, 0.58 and 0.61.
SURE_LANGUAGE = 0.7
# Somebody speaks another language than before if it has at least this probability. Of 350 English recordings no other
# language had it; of 51 synthetic Spanish, French and Italian sentences 41 had it for theirs, 46 where one of two is
# spoken.
ANOTHER_LANGUAGE = 0.8
# Hypotheses kept while decoding, where nobody else waits for the recogniser: a fifth more time than with one, and fewer
# words are wrong (docs/decisions/0006).
BEAM_SIZE = 3
# Seconds of speech up to which there are so many: they take no longer than one of the longest speech.
BEAM_WITHIN_S = 12.0
# What faster-whisper puts before an utterance at most. Of more it takes the last, and a glossary begins with the
# likeliest words.
MOST_PROMPT_TOKENS = MAX_TOKENS // 2 - 1
# A model is loaded a second time, to decode in one thread, if its file has no more bytes. whisper-base has 145 million.
MOST_LOADED_TWICE_BYTES = 200_000_000
NEEDED_FILES = ("config.json", "model.bin", "tokenizer.json")


# Silence added after an utterance, before the padding. Without it, utterances that end right after the last word were
# sometimes recognised as their first word alone ('Room' for "Roomtone, when does the concert start?"). 0.5 s fixes that
# and does not change the error rate (45 recordings: 5.4 % with, 5.5 % without).
_TAIL_S = 0.5
_TAIL = np.zeros(int(_TAIL_S * LISTEN_RATE_HZ), dtype=np.float32)

# Assumed while detection is unsure, as on a short first word, on servers that have chosen no language.
UNSURE_LANGUAGE = "en"
# Encoding takes three quarters of the time of one thread, for hardly more CPU.
ENCODING_THREADS = 2


class WhisperEngine(Engine):
    """A Whisper model that is loaded on the processor or GPU of `place`. Not thread-safe.

    `stands_in`: it replaces another recogniser for a while, and takes as little memory as it can.

    Raises `RecogniserError` if the model cannot be loaded, in a plain sentence with the remedy.
    """

    def __init__(
        self,
        folder: Path,
        settings: AsrSettings,
        place: DevicePlacement = CPU,
        *,
        stands_in: bool = False,
        threads: int = ENCODING_THREADS,
    ) -> None:
        _check_model_dir(folder)
        try:
            # Asks the device, and a GPU that is lost fails already here.
            place = supported(place)
            self._model = WhisperModel(
                str(folder),
                device=place.device,
                compute_type=place.compute_type,
                cpu_threads=threads,
                local_files_only=True,
            )
            self._model.hf_tokenizer = whole_tokenizer(folder / "tokenizer.json")
            self._decoder = (
                self._model.model if stands_in else _decoder(self._model.model, folder, place, threads=threads)
            )
        # CTranslate2 raises RuntimeError and ValueError, tokenizers plain Exception.
        except Exception as exc:
            raise RecogniserError(_unreadable(folder, str(exc))) from exc
        self._is_multilingual = bool(self._model.model.is_multilingual)
        # A larger model may know more languages than this one: Cantonese is known to large-v3 alone. One that knows
        # nothing but English needs no sign for it.
        self._language_codes = frozenset(
            code
            for code in self._model.supported_languages
            if not self._is_multilingual or self._model.hf_tokenizer.token_to_id(f"<|{code}|>") is not None
        )
        if not settings.by_endpoint:
            self._check_languages(folder, settings.languages)
        self._tokenizers: dict[str, tuple[Tokenizer, tuple[int, ...]]] = {}

    def recognise_together(self, requests: Sequence[RecognitionRequest], *, others: Sized = ()) -> list[Recognition]:
        """Return the texts of requests that fit together (`worker.fit_together`): mono int16, 16 kHz; only the first
        30 s are used. Blocks. Raises `RecogniserError`.

        A language that is None or unknown to the model is detected from the same encoding, for one decoder step. What
        is careful is encoded in the whole window, for up to six times the work. `others`: the requests that wait
        by now. If there are any, a text is decoded with one hypothesis.
        """
        started = time.perf_counter()
        heard = [
            replace(request, pcm=request.pcm[: int(FULL_WINDOW_S * LISTEN_RATE_HZ)], language=self._expected(request))
            for request in requests
        ]
        try:
            spoken = self._recognise(heard, others)
        except RecogniserError:
            raise
        except Exception as exc:
            longest_s = max(duration_s(request.pcm) for request in heard)
            raise RecogniserError(f"The speech model failed on {longest_s:.1f} s of sound: {exc}") from exc
        each_s = (time.perf_counter() - started) / len(heard)
        return [replace(recognition, compute_s=each_s) for recognition in spoken]

    def _check_languages(self, folder: Path, spoken: Iterable[str]) -> None:
        """Raise `RecogniserError` if people speak a language that the model does not know."""
        unknown = set(spoken) - self._language_codes
        if unknown:
            raise RecogniserError(
                f"The speech model in {folder} does not know the language '{min(unknown)}'; "
                "leave it out of asr.languages, or name a model that knows it (asr.model)."
            )

    def _expected(self, request: RecognitionRequest) -> LanguageHint:
        """Return the language to hear a request in, or those among which it is detected.

        What another recogniser has detected may be unknown to this one, and the words still count.
        """
        if not self._is_multilingual:
            return "en"
        expected = expected_language(request.language)
        return request.language if expected is None or expected in self._language_codes else None

    def _recognise(self, requests: Sequence[RecognitionRequest], others: Sized) -> list[Recognition]:
        careful = requests[0].careful
        lasting_s = [duration_s(request.pcm) for request in requests]
        length_s = FULL_WINDOW_S if careful else encoder_window_s(max(lasting_s))
        encoded = self._model.encode(np.stack([self._features(request.pcm, length_s) for request in requests]))
        languages = self._languages(requests, encoded)
        tokenizers = [self._tokenizer(language) for language, _ in languages]
        prompts = self._prompts([tokenizer for tokenizer, _ in tokenizers], requests)
        max_length = _max_length(len(prompts[0]), token_cap(max(lasting_s)))

        # Where the whole window is encoded, one hypothesis breaks no text.
        alone = len(requests) == 1 and not careful and duration_s(requests[0].pcm) <= BEAM_WITHIN_S
        results: list[Any] = self._decoder.generate(
            encoded,
            prompts,
            beam_size=BEAM_SIZE if alone and not others else 1,
            max_length=max_length,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            # The same tokens for all languages: symbols and the model's own.
            suppress_tokens=list(tokenizers[0][1]),
        )
        return [
            self._recognition(request, result, tokenizer, *language)
            for request, result, (tokenizer, _), language in zip(requests, results, tokenizers, languages, strict=True)
        ]

    def _recognition(
        self,
        request: RecognitionRequest,
        result: Any,
        tokenizer: Tokenizer,
        language: str,
        probability: float,
    ) -> Recognition:
        tokens = result.sequences_ids[0]
        text = tokenizer.decode(tokens).strip()
        if len(tokens) >= token_cap(duration_s(request.pcm)):
            text = remove_repetition(text)
        return Recognition(
            text=text,
            language=language,
            # The score is the mean over the tokens; the end-of-text token counts as one more, as in Whisper.
            mean_logprob=result.scores[0] * len(tokens) / (len(tokens) + 1),
            compression_ratio=compression_ratio(text),
            no_speech_probability=float(result.no_speech_prob),
            duration_s=duration_s(request.pcm),
            compute_s=0.0,
            language_probability=float(probability),
        )

    def _languages(
        self, requests: Sequence[RecognitionRequest], encoded: ctranslate2.StorageView
    ) -> list[tuple[str, float]]:
        """Return the language of each request and its probability. All are detected if one may be any."""
        known = [(request.language, 1.0) for request in requests if isinstance(request.language, str)]
        if len(known) == len(requests):
            return known
        found = self._decoder.detect_language(encoded)
        return [self._language(request.language, each) for request, each in zip(requests, found, strict=True)]

    def _language(self, hint: LanguageHint, probabilities: Sequence[tuple[str, float]]) -> tuple[str, float]:
        """Return the language to hear a sound in, and its probability.

        Told to hear Spanish as English, Whisper translates it, and is as sure as of English: only the sound tells.
        """
        if isinstance(hint, str):
            return hint, 1.0
        if not isinstance(hint, UsualLanguage):
            return self._likely(probabilities, hint or ())
        found, probability = self._likely(probabilities, hint.among)
        is_another = found != hint.code and probability >= ANOTHER_LANGUAGE
        return (found, probability) if is_another else (hint.code, 1.0)

    def _likely(self, probabilities: Sequence[tuple[str, float]], among: Sequence[str]) -> tuple[str, float]:
        """Return the language and its probability; the fallback's if none is likely enough.

        Where languages are named, one of these is spoken, and the probability is that among them.
        """
        found = {token[2:-2]: float(probability) for token, probability in probabilities}
        if named := {code: share for code, share in found.items() if code in among}:
            whole = sum(named.values()) or 1.0
            found = {code: share / whole for code, share in named.items()}
        best = max(found, key=lambda language: found[language])
        if found[best] < SURE_LANGUAGE and UNSURE_LANGUAGE in found:
            return UNSURE_LANGUAGE, found[UNSURE_LANGUAGE]
        return best, found[best]

    def _features(self, pcm: Pcm, length_s: float) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the log-mel spectrogram of `pcm` followed by silence up to `length_s`: (mels, frames)."""
        frames = round(length_s * FRAMES_PER_S)
        sound = np.concatenate([pcm.astype(np.float32) / INT16_FULL_SCALE, _TAIL])
        features = self._model.feature_extractor(sound)[:, :frames]
        # faster-whisper pads with zeros too, and its published error rates depend on it.
        return np.pad(features, ((0, 0), (0, frames - features.shape[1]))).astype(np.float32)

    def _prompts(self, tokenizers: Sequence[Tokenizer], requests: Sequence[RecognitionRequest]) -> list[list[int]]:
        """Return the prompts, all of one length, as CTranslate2 wants them: shorter glossaries begin again."""
        before = [
            tokenizer.encode(" " + text)[:MOST_PROMPT_TOKENS] if (text := glossary_prompt(request.glossary)) else []
            for tokenizer, request in zip(tokenizers, requests, strict=True)
        ]
        longest = max(len(tokens) for tokens in before)
        return [
            self._model.get_prompt(tokenizer, lengthened(tokens, longest), without_timestamps=True)
            for tokenizer, tokens in zip(tokenizers, before, strict=True)
        ]

    def _tokenizer(self, language: str) -> tuple[Tokenizer, tuple[int, ...]]:
        known = self._tokenizers.get(language)
        if known is None:
            tokenizer = Tokenizer(self._model.hf_tokenizer, self._is_multilingual, task="transcribe", language=language)
            known = (tokenizer, tuple(get_suppressed_tokens(tokenizer, [-1]) or ()))
            self._tokenizers[language] = known
        return known


def engine_on_best_device(
    folder: Path,
    settings: AsrSettings,
    *,
    stands_in: bool = False,
    threads: int = ENCODING_THREADS,
    uses_gpu: bool = True,
) -> CudaFallback:
    """Return what loads the model in `folder` on a CUDA device that works, or on the CPU. See `WhisperEngine`.

    Whoever recognises here asks for the engine here, so one of another kind is chosen by its folder in this place.
    """
    return CudaFallback(
        partial(WhisperEngine, folder, settings, stands_in=stands_in, threads=threads),
        cuda_devices=None if uses_gpu else 0,
    )


def _decoder(
    encoder: ctranslate2.models.Whisper, folder: Path, place: DevicePlacement, *, threads: int
) -> ctranslate2.models.Whisper:
    """Return what decodes: of a small model on the CPU a second copy, which computes in one thread.

    A step of the decoder computes so little that threads wait for each other most of the time. With two, decoding with
    whisper-base takes 1.1 times as long, 1.8 times with three hypotheses, and 1.5 to 2.1 times the CPU time
    (docs/decisions/0006). CTranslate2 has one number of threads for all that a loaded model computes.
    """
    file = folder / "model.bin"
    if place.device != CPU.device or threads == 1 or file.stat().st_size > MOST_LOADED_TWICE_BYTES:
        return encoder
    return ctranslate2.models.Whisper(
        str(folder), device=place.device, compute_type=place.compute_type, intra_threads=1
    )


def lengthened(tokens: list[int], length: int) -> list[int]:
    """Return tokens that are repeated before themselves until they are so many. Nothing stays nothing."""
    if not tokens:
        return []
    return [*islice(cycle(tokens[::-1]), length)][::-1]


def _max_length(prompt_tokens: int, most_tokens: int) -> int:
    """Return CTranslate2's `max_length` for an answer of `most_tokens`.

    CTranslate2 limits the answer to `max_length / 2` or to `max_length` less the prompt, whichever is smaller
    (src/models/whisper.cc). Passing the prompt's length plus the cap would halve the cap and cut off fast speakers.
    """
    return min(MAX_TOKENS, max(2 * most_tokens, prompt_tokens + most_tokens))


def _check_model_dir(model_dir: Path) -> None:
    missing = [name for name in NEEDED_FILES if not (model_dir / name).is_file()]
    if missing:
        raise RecogniserError(_unreadable(model_dir, f"{', '.join(missing)} is missing"))


def _unreadable(model_dir: Path, why: str) -> str:
    return (
        f"The speech model in {model_dir} cannot be read ({why}); "
        "get one with `roomtone models pull whisper`, or set asr.model to the folder of a CTranslate2 Whisper model."
    )
