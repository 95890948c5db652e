"""Measures the embedded voices: `python -m benchmarks.reply.voices`.

Run it by hand; the results are in docs/models.md. Each installed voice says ten sentences in its language, in a process
of its own. The program counts the processor time, the time until a sentence can be played, and the memory; then the
configured recogniser writes down what it hears, and the words that differ are counted. Needs two minutes.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jiwer
import structlog

from benchmarks.machine import describe_machine
from bot.models.directory import ModelDirectory
from bot.models.loaded_voices import LoadedVoices
from bot.models.voices import VOICES, EmbeddedVoice, find_voice
from config.load import load
from rehearsal.words import WordErrors, sum_word_errors, word_errors
from voice.asr.whisper import WhisperEngine
from voice.audio import LISTEN_RATE_HZ
from voice.speaking.port import synthesize_all
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.settings import ModelsSettings
    from voice.asr.settings import AsrSettings
    from voice.speaking.port import Speech

# What the bot could say, without numbers and names, which are written in several ways.
SENTENCES: Mapping[str, Sequence[str]] = {
    "en": (
        "I think you wanted to bring the bread and the cheese tomorrow.",
        "Yes, the door to the garden is open again.",
        "You said that the train leaves early in the morning.",
        "I am not sure, but somebody mentioned a blue canoe.",
        "The soup should cook a little longer before you add the cream.",
        "I'm sorry, nobody has talked about the budget yet.",
        "First you collect the keys, then you look for the map.",
        "It was your sister who moved to the coast last summer.",
        "That is a good question, and I would rather ask the others.",
        "We have decided to meet in the small room next week.",
    ),
    "de": (
        "Ich glaube, du wolltest morgen das Brot und den Käse mitbringen.",
        "Ja, die Tür zum Garten ist wieder offen.",
        "Du hast gesagt, dass der Zug früh am Morgen fährt.",
        "Ich bin nicht sicher, aber jemand hat ein blaues Kanu erwähnt.",
        "Die Suppe sollte noch etwas kochen, bevor die Sahne dazukommt.",
        "Es tut mir leid, über das Geld hat noch niemand gesprochen.",
        "Zuerst sammelt ihr die Schlüssel, dann sucht ihr die Karte.",
        "Deine Schwester ist im letzten Sommer an die Küste gezogen.",
        "Das ist eine gute Frage, und ich würde lieber die anderen fragen.",
        "Wir treffen uns nächste Woche in dem kleinen Zimmer.",
    ),
    "fr": (
        "Je crois que tu voulais apporter le pain et le fromage demain.",
        "Oui, la porte du jardin est encore ouverte.",
        "Tu as dit que le train part tôt le matin.",
        "Je ne suis pas sûr, mais quelqu'un a parlé d'un bateau bleu.",
        "La soupe doit cuire un peu plus longtemps avant la crème.",
        "Je suis désolé, personne n'a encore parlé du budget.",
        "D'abord vous cherchez les clés, puis vous regardez la carte.",
        "C'est ta sœur qui a déménagé au bord de la mer.",
        "C'est une bonne question, et je préfère demander aux autres.",
        "Nous avons décidé de nous retrouver la semaine prochaine.",
    ),
    "es": (
        "Creo que querías traer el pan y el queso mañana.",
        "Sí, la puerta del jardín está abierta otra vez.",
        "Dijiste que el tren sale temprano por la mañana.",
        "No estoy seguro, pero alguien habló de una canoa azul.",
        "La sopa debe cocinarse un poco más antes de la crema.",
        "Lo siento, nadie ha hablado todavía del presupuesto.",
        "Primero buscáis las llaves y después miráis el mapa.",
        "Fue tu hermana quien se mudó a la costa el verano pasado.",
        "Es una buena pregunta, y prefiero preguntar a los demás.",
        "Hemos decidido vernos en la sala pequeña la próxima semana.",
    ),
    "it": (
        "Credo che volessi portare il pane e il formaggio domani.",
        "Sì, la porta del giardino è di nuovo aperta.",
        "Hai detto che il treno parte presto la mattina.",
        "Non sono sicuro, ma qualcuno ha parlato di una barca blu.",
        "La zuppa deve cuocere ancora un poco prima della panna.",
        "Mi dispiace, nessuno ha ancora parlato del bilancio.",
        "Prima cercate le chiavi, poi guardate la mappa.",
        "È stata tua sorella a trasferirsi al mare la scorsa estate.",
        "È una bella domanda, e preferisco chiedere agli altri.",
        "Abbiamo deciso di vederci nella stanza piccola la settimana prossima.",
    ),
}
_NOT_WORDS = re.compile(r"[^\w']+")
# The first sentence is not counted: it comes while the memory is still growing.
_WARM_UP = 1
_PROCESS_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class VoiceResult:
    """One voice's figures. The times are in seconds, `cpu_share` for each second of speech; the memory in MB."""

    name: str
    speech_s: float
    cpu_share: float
    sentence_s: float
    load_cpu_s: float
    memory_mb: float
    errors: int
    words: int


def main(name: str = "") -> None:
    """Print one voice's figures as JSON, or a table of all that are installed."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    settings = load()
    voice = find_voice(name)
    if voice is not None:
        result = asyncio.run(measured(voice, settings.models, settings.asr))
        sys.stdout.write(json.dumps(asdict(result)) + "\n")
        return
    models = ModelDirectory(settings.models.directory)
    rows = [table_row(each, _in_own_process(each) if models.holds(each.model) else None) for each in VOICES]
    machine = describe_machine()
    sys.stdout.write("\n".join((*TABLE_HEAD, *rows)))
    sys.stdout.write(f"\n\n{machine.cpu}, {machine.cores} cores, load {machine.load_1m} at the end\n")


def _in_own_process(voice: EmbeddedVoice) -> VoiceResult:
    command = [sys.executable, "-m", "benchmarks.reply.voices", voice.name]
    ended = subprocess.run(  # noqa: S603 -- our own interpreter and module
        command, stdout=subprocess.PIPE, check=True, text=True, timeout=_PROCESS_TIMEOUT_S
    )
    return VoiceResult(**json.loads(ended.stdout))


async def measured(voice: EmbeddedVoice, models: ModelsSettings, asr: AsrSettings) -> VoiceResult:
    """Let a voice speak, and return its figures."""
    sentences = SENTENCES[voice.code]
    before_mb, before_cpu = _memory_mb(), time.process_time()
    async with LoadedVoices(ModelDirectory(models.directory), chosen=tuple) as voices:
        await voices.load(voice)
        load_cpu_s = time.process_time() - before_cpu
        spoken: list[Speech] = []
        waits: list[float] = []
        async with voices.using(voice) as synthesizer:
            for number, sentence in enumerate((*sentences[:_WARM_UP], *sentences)):
                if number == _WARM_UP:
                    spoken, waits, before_cpu = [], [], time.process_time()
                started = time.perf_counter()
                spoken.append(await synthesize_all(synthesizer, sentence))
                waits.append(time.perf_counter() - started)
        cpu_s = time.process_time() - before_cpu
        memory_mb = _memory_mb() - before_mb
    speech_s = sum(len(speech.pcm) / speech.rate_hz for speech in spoken)
    heard = await asyncio.to_thread(_errors, spoken, voice.code, asr)
    return VoiceResult(
        voice.name,
        speech_s=speech_s,
        cpu_share=cpu_s / speech_s,
        sentence_s=statistics.median(waits),
        load_cpu_s=load_cpu_s,
        memory_mb=memory_mb,
        errors=heard.errors,
        words=heard.words,
    )


def _errors(spoken: Sequence[Speech], language: str, asr: AsrSettings) -> WordErrors:
    recogniser = WhisperEngine(asr)
    found = []
    for speech in spoken:
        pcm = resample(speech.pcm, speech.rate_hz, LISTEN_RATE_HZ)
        heard = recogniser.recognise(pcm, language=language).text
        found.append(errors_in(language, speech.text, heard))
        if found[-1].errors:
            sys.stderr.write(f"{speech.text}\n  {heard}\n")
    return sum_word_errors(found)


def errors_in(language: str, said: str, heard: str) -> WordErrors:
    """Count the word errors. English has a normaliser of spellings; else only case and punctuation are left out."""
    if language == "en":
        return word_errors(said, heard)
    one, other = (_NOT_WORDS.sub(" ", text.casefold()).strip() for text in (said, heard))
    found = jiwer.process_words(one, other)
    return WordErrors(found.substitutions + found.deletions + found.insertions, len(one.split()))


TABLE_HEAD = (
    "| voice | language | engine | memory | CPU for 1 s of speech | until a sentence can be played | words misheard |",
    "|---|---|---|---:|---:|---:|---:|",
)


def table_row(voice: EmbeddedVoice, result: VoiceResult | None) -> str:
    """Return one row of the table in docs/models.md. `result` None: the voice is not installed."""
    cells = [voice.title, voice.language, voice.engine]
    if result is None:
        return "| " + " | ".join((*cells, "not measured")) + " | | | |"
    figures = (
        f"{result.memory_mb:.0f} MB",
        f"{result.cpu_share:.2f} s",
        f"{result.sentence_s:.2f} s",
        f"{result.errors} of {result.words}",
    )
    return "| " + " | ".join((*cells, *figures)) + " |"


def _memory_mb() -> float:
    """Return the resident memory of this process; on systems without /proc the most that it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main(*sys.argv[1:])
