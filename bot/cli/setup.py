"""`roomtone setup`: asks for the bot's token, language model, voice and public address, tries each at once, writes them
into `.env` and `roomtone.toml`, and prints the link that adds the bot to a server.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import SecretStr

from bot.cli.doctor.finding import Finding, Status
from bot.cli.doctor.machine import check_recogniser
from bot.cli.doctor.services import check_discord, check_language_model, check_screens
from bot.cli.environment import write_named_file
from bot.cli.output import confirm, say
from bot.cli.run import next_step
from bot.cli.settings_files import has_setting, variables_in, with_setting, with_variable
from bot.discord.endpoint import token_of
from bot.errors import SetupError
from bot.models.voices import DEFAULT_VOICE, open_voice
from config import ConfigError
from config.load import env_file, load, settings_file
from config.location import CONFIG_VARIABLE
from config.problems import toml_value
from config.schema import SETTINGS, WELL_KNOWN_VARIABLES, Settings
from voice.endpoint_settings import OPENAI_URL, to_connect
from voice.errors import VoiceError
from voice.speaking.port import Synthesizer, synthesize_all

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    # Settings by dotted name.
    Values = Mapping[str, object]

# What the settings say already.
KEEP = "keep"
# The settings of each language model that has a name here. Those but Ollama's need a key.
PROVIDERS: Mapping[str, Values] = {
    "openai": {"llm.base_url": "", "llm.model": "gpt-4.1-mini"},
    "anthropic": {"llm.base_url": "https://api.anthropic.com/v1", "llm.model": "claude-haiku-4-5"},
    "gemini": {
        "llm.base_url": "https://generativelanguage.googleapis.com/v1beta/openai",
        "llm.model": "gemini-2.5-flash-lite",
    },
    # Its own default on most machines is 4,096 tokens; it cuts a longer prompt and does not say so.
    "ollama": {
        "llm.base_url": "http://127.0.0.1:11434/v1",
        "llm.model": "llama3.2",
        "budget.max_context_tokens": 4_096,
    },
}
_KEYED = PROVIDERS.keys() - {"ollama"}
# What the questions call the settings that sentences name. The longer names come first.
WORDS: Mapping[str, str] = {
    "llm.api_key (or OPENAI_API_KEY)": "the key",
    " (and discord.api_base, if it is set)": "",
    " into DISCORD_TOKEN": "",
    "DISCORD_TOKEN": "The token",
    "another llm.model": "another model",
    "llm.max_output_tokens": "how long its answers may be",
    " (PUBLIC_URL is not set)": "",
    " in an override": "",
    "set PUBLIC_URL to its https address": "give its https address",
    "web.public_url": "the address of the pages",
    "llm.base_url": "the address of the model",
    "llm.api_key": "its key",
    "llm.model": "the name of the model",
    "speaking.base_url": "the address of the voice",
    "speaking.api_key": "the key of the voice",
    "speaking.model": "the model of the voice",
    "speaking.voice_name": "the name of the voice",
}
# Later looks at the same files say nothing about them again.
_quietly = partial(load, notify=lambda _: None)


def command(
    token: Annotated[str | None, typer.Option(envvar="DISCORD_TOKEN", help="The bot's token.")] = None,
    model: Annotated[
        str | None, typer.Option(help=f"The language model: {', '.join(PROVIDERS)}, none, or a server's address.")
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="Its name there.")] = None,
    key: Annotated[str | None, typer.Option(envvar="ROOMTONE_LLM__API_KEY", help="Its key.")] = None,
    voice: Annotated[str | None, typer.Option(help="The voice: own, openai, or a server's address.")] = None,
    voice_model: Annotated[str | None, typer.Option(help="Its model there.")] = None,
    voice_name: Annotated[str | None, typer.Option(help="Which of its voices.")] = None,
    voice_key: Annotated[str | None, typer.Option(help="Its key, if it is not the language model's.")] = None,
    public_url: Annotated[
        str | None, typer.Option(envvar="PUBLIC_URL", help="Where people open the bot's pages, or none.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Change what the files say already without asking.")] = False,
) -> None:
    """Set the bot up: ask for its token, language model, voice and public address, try each, write them down, and print
    the invitation.

    What an option says is not asked. Other users of this machine can see options: give token and key as variables.
    Nothing is written before all of it works.
    """
    from bot.discord.connection import known_bot

    _require_answers(load(), token, model, model_name, key)
    wanted = _tried(_token, [token], _try_token, {})
    wanted = _tried(_model, [model, model_name, key], _try_model, wanted)
    wanted = _tried(_voice, [voice, voice_model, voice_name, voice_key], _try_voice, wanted)
    wanted = _tried(_pages, [public_url], _try_pages, wanted)
    # Discord is asked before anything is written. It may not answer.
    application_id = asyncio.run(known_bot(_quietly(overrides=wanted).discord)).application_id
    _write(wanted, yes=yes)
    now = _quietly()
    if hidden := [key for key, value in wanted.items() if value != _value(now, key)]:
        raise SetupError(
            f"Your shell sets {', '.join(_variable(each) for each in hidden)} too, which goes before what was written. "
            "Unset it there."
        )
    if (heard := check_recogniser(now.models, now.asr)).status is Status.MISSING:
        say(f"{heard.detail} {heard.remedy}")
    say(next_step(application_id, is_in_a_server=False))
    say(f"Start the bot with:\n{as_typed('run')}")


def as_typed(*words: str) -> str:
    """Return a command of this program as it can be typed where this one was."""
    called = Path(sys.argv[0])
    program = [str(called)]
    if called.name == "__main__.py":
        program = [sys.executable, "-m", "bot"]
    elif shutil.which(called.name) == str(called.resolve()) or shutil.which(called.name) == str(called):
        program = [called.name]
    config = os.environ.get(CONFIG_VARIABLE)
    return shlex.join([*program, *(() if config is None else ("--config", config)), *words])


def in_words(sentence: str) -> str:
    """Return a sentence of the operator without names of settings: who is asked knows only the questions."""
    for name, words in WORDS.items():
        sentence = sentence.replace(name, words)
    return sentence


def can_ask() -> bool:
    """Return whether somebody can answer."""
    return sys.stdin.isatty()


def _require_answers(
    now: Settings, token: str | None, model: str | None, model_name: str | None, key: str | None
) -> None:
    """Raise `SetupError` if something is missing that nobody can say."""
    known: dict[str, object] = {
        "--token": token or token_of(now.discord),
        "--model": model or now.llm.configured,
        # At a server's address; the others have a usual one.
        "--model-name": model_name or not (model or "").startswith("http"),
    }
    if model in _KEYED:
        known["--key"] = key or now.llm.key_for(str(PROVIDERS[model]["llm.base_url"]), None)
    missing = [flag for flag, value in known.items() if not value]
    if missing and not can_ask():
        raise SetupError(f"Nobody can answer questions here. Add {', '.join(missing)} to the command.")


def _tried(
    ask: Callable[..., Values],
    said: Sequence[str | None],
    check: Callable[[Settings], Coroutine[Any, Any, Finding]],
    wanted: Values,
) -> Values:
    """Return the wanted settings with those of one question. Ask again until they work. `said`: what the command line
    says of them; None: it is asked, or stays as it is.
    """
    while True:
        values = {**wanted, **ask(_quietly(overrides=wanted), *said)}
        try:
            finding = asyncio.run(check(_quietly(overrides=values)))
        except ConfigError as error:
            # The question has an example already, without a setting's name.
            finding = Finding("settings", Status.MISSING, error.problems[0].partition(" For example: ")[0])
        sentence = in_words(f"{finding.detail.rstrip('.')}. {finding.remedy}".strip())
        if finding.status is not Status.MISSING:
            say(f"{finding.name}: {sentence}")
            return values
        told = sentence if sentence.startswith("http") else f"{sentence[0].upper()}{sentence[1:]}"
        if not can_ask():
            raise SetupError(told)
        say(told)
        said = [None] * len(said)


def _ask(question: str, said: str | None, default: str | None, *, is_secret: bool = False) -> str:
    """Return what was said, or what somebody answers. `default`: of Enter, and where nobody can answer."""
    if said is None:
        said = default or ""
        if can_ask():
            said = typer.prompt(question, default=default, show_default=bool(default), hide_input=is_secret)
    return said.strip().strip("'\"")


def _ask_secret(question: str, said: str | None, *, had: str, needed: bool) -> str | None:
    """Return a secret; None: there is none. `had`: the one that is set."""
    about = f"{question} (not shown{'; Enter: the one that is set' if had else '' if needed else '; Enter: none'})"
    return _ask(about, said, None if needed and not had else "", is_secret=True) or had or None


def _token(now: Settings, token: str | None) -> Values:
    question = "The bot's token, from the page Bot of the developer portal"
    return {"discord.token": _ask_secret(question, token, had=token_of(now.discord), needed=True)}


def _model(now: Settings, model: str | None, name: str | None, key: str | None) -> Values:
    llm = now.llm
    question = f"The language model: {', '.join(PROVIDERS)}, none, or a server's address"
    which = _ask(question, model, KEEP if llm.configured else "openai")
    if which == "none":
        usual = type(llm)()
        return {"llm.base_url": "", "llm.api_key": None, "llm.model": usual.model, "llm.fallback_models": ()}
    values: dict[str, object] = {"llm.base_url": to_connect(llm.base_url), "llm.model": name or llm.model}
    if which in PROVIDERS:
        values = {**PROVIDERS[which], **({"llm.model": name} if name else {})}
    elif which != KEEP:
        values = {"llm.base_url": which, "llm.model": _ask("Its name there", name, None)}
    if which != "ollama" and (which != KEEP or key):
        had = llm.key_for(str(values["llm.base_url"]), None)
        values["llm.api_key"] = _ask_secret("Its key", key, had=had, needed=which in _KEYED)
    return values


def _voice(now: Settings, voice: str | None, model: str | None, name: str | None, key: str | None) -> Values:
    speaking = now.speaking
    question = "The voice: own (on this machine), openai, or a server's address"
    which = _ask(question, voice, KEEP if speaking.by_endpoint else "own")
    if which == KEEP:
        return {}
    if which == "own":
        return {"speaking.base_url": "", "speaking.api_key": None}
    return {
        "speaking.base_url": OPENAI_URL if which == "openai" else which,
        "speaking.model": _ask("Its model", model, speaking.model),
        "speaking.voice_name": _ask("Which of its voices", name, speaking.voice_name),
        "speaking.api_key": _ask_secret("Its key, if it is another", key, had="", needed=False),
    }


def _pages(now: Settings, address: str | None) -> Values:
    question = "Where people open the dashboard and share screens, such as https://watch.example.org, or none"
    given = _ask(question, address, now.web.public_url or "none")
    return {"web.public_url": "" if given == "none" else given}


async def _try_pages(settings: Settings) -> Finding:
    """Look at the address alone: what answers there may be set up later."""
    return check_screens(settings.screen, settings.web, installed=True)


async def _try_token(settings: Settings) -> Finding:
    """Ask Discord whose token it is."""
    finding = await check_discord(settings.discord)
    return finding if token_of(settings.discord) else replace(finding, status=Status.MISSING)


async def _try_model(settings: Settings) -> Finding:
    if not settings.llm.configured:
        return Finding(
            "language model", Status.OK, "none, so the bot answers with quotes of what was said, and says so"
        )
    return await check_language_model(settings.llm)


async def _try_voice(settings: Settings) -> Finding:
    """Let the voice say one sentence."""
    from bot.wiring.speech_models import endpoint_voice

    speaking = settings.speaking
    voice = f"{speaking.model} at {speaking.base_url}" if speaking.by_endpoint else DEFAULT_VOICE.title
    try:
        opened: AbstractAsyncContextManager[Synthesizer] = (
            endpoint_voice(speaking, settings.llm)
            if speaking.by_endpoint
            else open_voice(DEFAULT_VOICE, settings.models.directory)
        )
        async with opened as synthesizer:
            speech = await synthesize_all(synthesizer, DEFAULT_VOICE.sample)
    except VoiceError as error:
        return Finding.told("voice", Status.MISSING, error)
    return Finding("voice", Status.OK, f"{voice} has said a sentence of {len(speech.pcm) / speech.rate_hz:.1f} s")


def _variable(name: str) -> str:
    """Return the variables that set a setting."""
    setting = next(each for each in SETTINGS.values() if each.name == name)
    usual = [variable for variable, key in WELL_KNOWN_VARIABLES.items() if key == setting.key]
    return " or ".join(each for each in (*usual, setting.variable) if each in os.environ) or setting.variable


def _value(settings: Settings, key: str) -> object:
    """Return a setting as it is written."""
    section, name = key.split(".")
    value = getattr(getattr(settings, section), name)
    return (value.get_secret_value() or None) if isinstance(value, SecretStr) else to_connect(value)


def _write(wanted: Values, *, yes: bool) -> None:
    """Write the settings that the files do not have. Lines that are there already are changed if somebody says yes."""
    own = {*WELL_KNOWN_VARIABLES, *(setting.variable for setting in SETTINGS.values())}
    written = _quietly(environ={name: value for name, value in os.environ.items() if name not in own})
    files = {file: file.read_text("utf-8") if file.exists() else "" for file in (env_file(), settings_file())}
    env, toml = files
    texts, changed = dict(files), list[str]()
    for setting in SETTINGS.values():
        if setting.name not in wanted or (value := wanted[setting.name]) == _value(written, setting.name):
            continue
        usual = next((name for name, key in WELL_KNOWN_VARIABLES.items() if key == setting.key), setting.variable)
        section, name = setting.key
        lines = variables_in(files[env])
        found = [each for each in (setting.variable, usual) if each in lines]
        had, text = has_setting(files[toml], section, name), "" if value is None else value
        # An empty variable sets nothing, so a key is taken out wherever it stands.
        variables = found if value is None else found[:1] or [usual] * setting.secret
        for variable in variables:
            texts[env] = with_variable(texts[env], variable, text if isinstance(text, str) else toml_value(text))
        if had if value is None else not variables:
            texts[toml] = with_setting(texts[toml], section, name, text)
        changed += [*filter(lines.get, variables), *[setting.name] * had]
    if changed:
        confirm(f"Shall I change what you have set for {', '.join(changed)}? All other lines stay.", yes=yes)
    for file, text in texts.items():
        if text != files[file]:
            write_named_file(file, text, example="~/.config/roomtone")
            say(f"Written: {file}")
