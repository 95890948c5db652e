"""Which source of a setting has precedence. All mistakes are reported together, in plain words and without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from config import ConfigError
from config.load import CREDENTIALS_FILE, CREDENTIALS_VARIABLE, load
from config.problems import FORMS
from config.schema import SETTINGS, Settings, secrets_in, settings_of

SECRET = "never-to-be-seen-123456789"


def problems_of(directory: Path, environ: Mapping[str, str] | None = None, **overrides: object) -> tuple[str, ...]:
    """Load a configuration that is wrong, and return its problems."""
    with pytest.raises(ConfigError) as caught:
        load(directory=directory, environ=environ or {}, overrides=overrides)
    assert str(caught.value).splitlines() == list(caught.value.problems)
    return caught.value.problems


def write(directory: Path, text: str, name: str = "roomtone.toml") -> Path:
    """Write a configuration file."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_set_gives_the_defaults(tmp_path: Path) -> None:
    """An empty directory and environment give the default settings."""
    assert load(directory=tmp_path, environ={}) == Settings()


def test_each_source_wins_over_the_one_before(tmp_path: Path) -> None:
    """The precedence is: defaults < roomtone.toml < .env < environment < overrides."""
    write(tmp_path, '[brain]\nnames = ["file"]\n[llm]\nmodel = "file"\n')
    assert load(directory=tmp_path, environ={}).brain.name == "file"
    write(tmp_path, "ROOMTONE_BRAIN__NAMES=dotenv\nexport ROOMTONE_LLM__MODEL='dotenv' # mine\n", ".env")
    settings = load(directory=tmp_path, environ={"ROOMTONE_LLM__MODEL": "environment"})
    assert (settings.brain.name, settings.llm.model) == ("dotenv", "environment")
    settings = load(
        directory=tmp_path, environ={"ROOMTONE_LLM__MODEL": "environment"}, overrides={"llm.model": "override"}
    )
    assert settings.llm.model == "override"


def test_tokens_have_their_usual_names(tmp_path: Path) -> None:
    """DISCORD_TOKEN and OPENAI_API_KEY are read, without surrounding blanks. The setting's own variable has
    precedence.
    """
    write(tmp_path, f"DISCORD_TOKEN={SECRET}\nSOMETHING_ELSE=1\n", ".env")
    settings = load(directory=tmp_path, environ={"OPENAI_API_KEY": f" {SECRET}2\n"})
    assert settings.discord.token is not None
    assert settings.discord.token.get_secret_value() == SECRET
    assert settings.llm.api_key is not None
    assert settings.llm.api_key.get_secret_value() == f"{SECRET}2"
    settings = load(directory=tmp_path, environ={"ROOMTONE_DISCORD__TOKEN": "own"})
    assert settings.discord.token == SecretStr("own")


@pytest.mark.parametrize(
    ("file", "dotenv", "environ", "key"),
    [
        ("", "", {}, SECRET),
        ("https://api.openai.com/v1", "", {}, SECRET),
        ("https://elsewhere.example/v1", "", {}, None),
        ("https://api.openai.com.example/v1", "", {}, None),
        ("https://api.openai.com@elsewhere.example/v1", "", {}, None),
        ("https://elsewhere.example/v1", "", {"ROOMTONE_LLM__API_KEY": "own"}, "own"),
        # The shell, or the operator's file, names both.
        ("", "", {"ROOMTONE_LLM__BASE_URL": "https://elsewhere.example/v1"}, SECRET),
        ("https://elsewhere.example/v1", "OPENAI_API_KEY=own\n", {"OPENAI_API_KEY": ""}, "own"),
    ],
)
def test_a_shells_key_goes_to_openai_alone(
    file: str, dotenv: str, environ: dict[str, str], key: str | None, tmp_path: Path
) -> None:
    """Many shells have one for other programs. The operator may say otherwise, and reads why it is not used."""
    write(tmp_path, f'[llm]\nbase_url = "{file}"\n')
    write(tmp_path, dotenv, ".env")
    told: list[str] = []
    settings = load(directory=tmp_path, environ={"OPENAI_API_KEY": SECRET} | environ, notify=told.append)
    assert (settings.llm.api_key and settings.llm.api_key.get_secret_value()) == key
    assert ["ROOMTONE_LLM__API_KEY" in each for each in told] == [True] * (key is None)


def test_empty_variables_count_as_unset(tmp_path: Path) -> None:
    """An empty variable, such as `ROOMTONE_WEB__PORT=` in a compose file, counts as unset."""
    environ = {"ROOMTONE_WEB__PORT": "", "DISCORD_TOKEN": " ", "ROOMTONE_CONFIG": ""}
    assert load(directory=tmp_path, environ=environ) == Settings()


def test_variables_become_numbers_lists_and_choices(tmp_path: Path) -> None:
    """The text of a variable is converted to the type of its setting. Lists are separated by commas or written as in
    TOML.
    """
    environ = {
        "ROOMTONE_WEB__PORT": "3",
        "ROOMTONE_RECALL__ENABLED": "true",
        "ROOMTONE_COMPACTION__MODE": "off",
        "ROOMTONE_STORAGE__DATA_DIR": "/var/lib/roomtone",
        "ROOMTONE_BRAIN__NAMES": "Otto, Ottilie ,",
    }
    settings = load(directory=tmp_path, environ=environ)
    assert settings.web.port == 3
    assert settings.recall.enabled is True
    assert settings.compaction.mode == "off"
    assert str(settings.storage.data_dir) == "/var/lib/roomtone"
    assert settings.brain.names == ("Otto", "Ottilie")
    settings = load(directory=tmp_path, environ={"ROOMTONE_BRAIN__NAMES": '["Otto, the bot", "O"]'})
    assert settings.brain.names == ("Otto, the bot", "O")
    deep = {"ROOMTONE_BRAIN__NAMES": "[" * 5_000}
    assert problems_of(tmp_path, deep)[0].startswith("brain.names")


def test_tables_stand_in_one_variable(tmp_path: Path) -> None:
    """A container has no file of settings: what is a list of tables there is one line of TOML here, in `.env` too."""
    line = '[{ model = "gpt-4.1-nano" }, { model = "llama3.2", base_url = "http://127.0.0.1:11434/v1" }]'
    (tmp_path / ".env").write_text(f"ROOMTONE_LLM__FALLBACK_MODELS={line}\n", "utf-8")
    for settings in (
        load(directory=tmp_path, environ={}),
        load(directory=tmp_path / "none", environ={"ROOMTONE_LLM__FALLBACK_MODELS": line}),
    ):
        assert [each.model for each in settings.llm.fallback_models] == ["gpt-4.1-nano", "llama3.2"]
        assert settings.llm.fallback_models[1].base_url == "http://127.0.0.1:11434/v1"


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    """The mistakes in files, .env, variables and overrides are told together: key, place, value, what is allowed. What
    only code sets is no setting.
    """
    write(
        tmp_path,
        'storage = 3\n[speaking]\nspeed = "soon"\n'
        '[screeen]\n[compaction]\nmode = "of"\nmodle = 1\nsummariser = "gpt"\n',
    )
    write(tmp_path, "this is no assignment\n", ".env")
    environ = {"ROOMTONE_WEB__PORT": "many", "ROOMTONE_LLM_MODEL": "x"}
    told = problems_of(tmp_path, environ, **{"brain.nmaes": 1, "llm.max_output_tokens": 9_000})
    expected = (
        ("storage in roomtone.toml", "[storage]"),
        ("compaction.modle in roomtone.toml", "compaction.mode?"),
        ("compaction.summariser in roomtone.toml", "compaction.mode?"),
        ("screeen in roomtone.toml", "screen?"),
        ("A line in .env", "NAME=value"),
        ("ROOMTONE_LLM_MODEL in the environment", "ROOMTONE_LLM__MODEL?"),
        ("brain.nmaes in an override", "brain.names?"),
        ("llm.max_output_tokens in an override", "4096"),
        # The form of all: key, place, what is allowed, what is there, a line that is right.
        ("speaking.speed in roomtone.toml must be a number, but is 'soon'. For example: speed = 1.0", "number"),
        ("web.port in ROOMTONE_WEB__PORT", "whole"),
        ("compaction.mode in roomtone.toml", "'rolling'"),
    )
    for problem, (place, word) in zip(told, expected, strict=True):
        assert problem.startswith(place)
        assert word in problem


def test_settings_that_do_not_fit_together_name_their_places(tmp_path: Path) -> None:
    """If two settings contradict each other, the message says where each was set."""
    write(tmp_path, "[budget]\nmax_context_tokens = 2048\n")
    (told,) = problems_of(tmp_path, None, **{"budget.reserved_output_tokens": 2_000})
    assert "max_context_tokens in roomtone.toml" in told
    assert "reserved_output_tokens in an override" in told


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("roomtone.toml", b"[asr]\nlanguage = = 1\n", "line 2"),
        ("roomtone.toml", b"[asr]\nlanguage = \xff\n", "position 17"),
        ("roomtone.toml", b"a = " + b"[" * 5_000, "TOML"),
        ("roomtone.toml", b"a = " + b"1" * 5_000, "TOML"),
        (".env", b"DISCORD_TOKEN=\xff\xfe", "UTF-8"),
    ],
)
def test_a_broken_file_is_told_with_its_line(tmp_path: Path, name: str, text: bytes, said: str) -> None:
    """A syntax error in the file is reported with its line, and environment variables are still checked."""
    (tmp_path / name).write_bytes(text)
    first, second = problems_of(tmp_path, {"ROOMTONE_WEB__PORT": "-1"})
    assert first.startswith(name)
    assert said in first
    assert second.startswith("web.port")


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """The path in ROOMTONE_CONFIG must exist; a folder must have a settings file or a `.env`."""
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        load(directory=tmp_path, environ={"ROOMTONE_CONFIG": "absent.toml"})
    with pytest.raises(ConfigError, match=r"roomtone\.toml"):
        load(directory=tmp_path, environ={"ROOMTONE_CONFIG": str(tmp_path)})


def test_secrets_never_print(tmp_path: Path) -> None:
    """Secrets appear neither in the settings' repr, str and dumps nor in messages about mistakes."""
    settings = load(directory=tmp_path, environ={"DISCORD_TOKEN": SECRET, "OPENAI_API_KEY": SECRET})
    shown = [repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())]
    assert all(SECRET not in each for each in shown)
    write(tmp_path, f'[discord]\ntoken = ["{SECRET}"]\ntokn = "{SECRET}"\n[llm]\nbase_url = ["sk-{SECRET}"]\n')
    write(tmp_path, f"DISCORD_TOKEN {SECRET}\n", ".env")
    told = problems_of(tmp_path, {"ROOMTONE_LLM__API_KEY_": SECRET})
    assert len(told) == 5
    assert all(SECRET not in each for each in told)


def test_a_failed_load_keeps_no_secret_in_its_traceback(tmp_path: Path) -> None:
    """The ConfigError does not chain pydantic's error, because that error quotes values."""
    write(tmp_path, f'[discord]\ntoken = ["{SECRET}"]\n')
    with pytest.raises(ConfigError) as caught:
        load(directory=tmp_path, environ={})
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_address_of_a_database_is_a_secret_of_its_own_variable(tmp_path: Path) -> None:
    """ROOMTONE_DATABASE_URL says where memory is kept. Its password is redacted on its own
    too, as it is written and as it is.
    """
    url = "postgresql://me:sesame%2F17open@db.example/rooms"
    write(tmp_path, f"ROOMTONE_DATABASE_URL={url}\n", ".env")
    settings = load(directory=tmp_path, environ={})
    assert settings.storage.database == SecretStr(url)
    assert "sesame" not in repr(settings)
    assert set(secrets_in(settings)) == {url, "sesame%2F17open", "sesame/17open"}
    assert load(directory=tmp_path, environ={}, overrides={"storage.database_url": None}).storage.database == Path(
        "data/roomtone.db"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ROOMTONE_WEB__PRT", "ROOMTONE_WEB__PORT?"),
        ("ROOMTONE_LISENING__TURN_MODEL", "setting"),
        ("ROOMTONE_QQQQ", "ROOMTONE_SECTION__FIELD"),
    ],
)
def test_a_mistyped_variable_of_ours_is_a_mistake(tmp_path: Path, written: str, said: str) -> None:
    """With a suggestion if one is close, else with the rule."""
    (told,) = problems_of(tmp_path, {written: "1"})
    assert told.startswith(written)
    assert said in told


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("DISCORD_TOCKEN", "DISCORD_TOKEN"),
        ("DISCORD_BOT_TOKEN", "DISCORD_TOKEN"),
        ("OPENAI_KEY", "OPENAI_API_KEY"),
        ("ROMTONE_ASR__LANGUAGES", "ROOMTONE_ASR__LANGUAGES"),
        ("DATABASE_URL", None),
        ("ANTHROPIC_API_KEY", None),
    ],
)
def test_a_variable_that_nearly_is_ours_is_pointed_out(tmp_path: Path, written: str, meant: str | None) -> None:
    """In `.env` and in the environment, without its value, unless the right one is set. Others are others' own."""
    write(tmp_path, f"{written}={SECRET}\n", ".env")
    told: list[str] = []
    load(directory=tmp_path, environ={}, notify=told.append)
    assert len(told) == (meant is not None)
    assert all(each.startswith(written) and f"{meant}?" in each for each in told)
    right = {meant: "en"} if meant is not None else {}
    told.clear()
    load(directory=tmp_path, environ=right, notify=told.append)
    assert told == []


names = st.sampled_from([setting.name for setting in SETTINGS.values()]) | st.text("asr.cpu_\n", max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
    max_leaves=5,
)


@given(overrides=st.dictionaries(names, values, max_size=5))
def test_any_value_is_taken_or_told(overrides: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any overrides give either settings or problems of one line each."""
    told: tuple[str, ...] = ("the settings are good",)
    try:
        load(directory=tmp_path_factory.getbasetemp(), environ={}, overrides=overrides)
    except ConfigError as error:
        told = error.problems
    assert told
    assert all("\n" not in each and len(each) > 20 for each in told)


@given(st.binary(max_size=40) | st.text('[]asr.="\n#1 brain', max_size=40).map(str.encode))
def test_any_file_is_taken_or_told(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Any content of the file and of `.env` gives either settings or a ConfigError."""
    directory = tmp_path_factory.getbasetemp()
    for name in ("any.toml", ".env"):
        (directory / name).write_bytes(content)
    told: tuple[str, ...] = ("the settings are good",)
    try:
        load(directory=directory, environ={"ROOMTONE_CONFIG": "any.toml"})
    except ConfigError as error:
        told = error.problems
    finally:
        (directory / ".env").unlink()
    assert told


def test_every_secret_is_found(tmp_path: Path) -> None:
    """`secrets_in` also finds the secrets in lists of servers and models, so that logs can leave them out."""
    (tmp_path / "roomtone.toml").write_text(
        '[discord]\ntoken = "token-1"\nguilds = [1]\n[llm]\napi_key = "key-2"\n[[llm.fallback_models]]\nmodel = "b"\n'
        'base_url = "http://b/v1"\napi_key = "key-3"\n[[mcp.servers]]\nname = "x"\nurl = "https://me:key-6@x/mcp"\n'
        'headers = { Authorization = "key-4" }\nenv = { A = "key-5" }\n',
        "utf-8",
    )
    found = set(secrets_in(load(directory=tmp_path, environ={})))
    assert found == {"token-1", "key-2", "key-3", "key-4", "key-5", "key-6", "https://me:key-6@x/mcp"}


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("", ()),
        ('consent = "ask"', (1, 2)),
        ('consent = { 1 = "ask" }', (1,)),
        ('consent = { all = "ask", 1 = "notice" }', (2,)),
    ],
)
def test_consent_is_for_every_server_or_by_server(tmp_path: Path, written: str, asked: tuple[int, ...]) -> None:
    """`room.consent` takes one word for every server or a table by server; a variable takes the word."""
    (tmp_path / "roomtone.toml").write_text(f"[room]\n{written}\n", encoding="utf-8")
    settings = load(directory=tmp_path, environ={})
    assert tuple(guild for guild in (1, 2) if settings.room.asks(guild)) == asked
    by_variable = load(directory=tmp_path, environ={"ROOMTONE_ROOM__CONSENT": "ask"})
    assert by_variable.room.asks(2)


def test_no_regular_expression_is_shown(tmp_path: Path) -> None:
    """What a text must look like is told in words, for every pattern in the schema."""
    entries = [setting.entry_type for setting in SETTINGS.values() if setting.entry_type is not None]
    fields = [setting.field for setting in SETTINGS.values()]
    fields += [setting.field for entry in entries for setting in settings_of(entry)]
    constraints = [each for field in fields for each in field.metadata]
    for field in fields:
        # The keys of a table have constraints of their own.
        for key in get_args(field.annotation):
            constraints += [each for info in getattr(key, "__metadata__", ()) for each in getattr(info, "metadata", ())]
    patterns = {getattr(each, "pattern", None) for each in constraints} - {None}
    assert patterns == set(FORMS)
    (told,) = problems_of(tmp_path, {"ROOMTONE_ASR__LANGUAGES": "English"})
    assert "letters" in told


def test_the_service_reads_its_credentials(tmp_path: Path) -> None:
    """systemd hands it a file with its secrets; a variable of the unit counts more."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / CREDENTIALS_FILE).write_text("DISCORD_TOKEN=token-1\nROOMTONE_BRAIN__NAMES=Otto\n", "utf-8")
    environ = {CREDENTIALS_VARIABLE: str(folder), "ROOMTONE_BRAIN__NAMES": "Emil"}
    settings = load(directory=tmp_path, environ=environ)
    assert settings.discord.token is not None
    assert (settings.discord.token.get_secret_value(), settings.brain.name) == ("token-1", "Emil")
    (folder / CREDENTIALS_FILE).write_text("sk-secret", "utf-8")
    with pytest.raises(ConfigError, match="NAME=value"):
        load(directory=tmp_path, environ=environ)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[storage]\ndata_dir = ""', "path"),
        ('[models]\ndirectory = " \\u0000"', "path"),
        ('[llm]\nmodel = " "', "empty"),
        ("[brain]\nnames = []", "empty"),
        ('[llm]\nbase_url = "http://my server/v1"', "https://"),
        ('[[mcp.servers]]\nname = "a"\nurl = "http://"', "https://"),
        ('[web]\nhost = "127.0.0.1:8095"', "web.port"),
    ],
)
def test_what_nobody_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """A blank path would be the working directory, and an address has a scheme."""
    write(tmp_path, text)
    (problem,) = problems_of(tmp_path)
    assert said in problem
    assert "For example: " in problem


@pytest.mark.parametrize(
    "text",
    ['[recall]\nenabled = "yes"', '[asr]\nmodel = ""', '[brain]\ninstructions = " "', '[web]\nhost = "fe80::1%eth0"'],
)
def test_what_is_meant_is_taken(tmp_path: Path, text: str) -> None:
    """Switches may be written as text, and an empty text is a default of several settings."""
    write(tmp_path, text)
    assert load(directory=tmp_path, environ={}).web.port == 8095
