"""The settings are found from any folder, and relative paths in them start at their own folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.models.directory import whisper_folder
from config import ConfigError, location
from config.load import load
from config.location import find_location


@pytest.fixture
def folders(tmp_path: Path) -> Mapping[str, Path]:
    """The folders that are looked in, each empty."""
    made = {name: tmp_path / name for name in ("working", "named", "checkout", "config", "data")}
    for folder in made.values():
        folder.mkdir()
    return made


def environ_of(folders: Mapping[str, Path], **more: str) -> dict[str, str]:
    """Return an environment with the user's folders."""
    return {"XDG_CONFIG_HOME": str(folders["config"]), "XDG_DATA_HOME": str(folders["data"]), **more}


@pytest.mark.parametrize("mark", ["roomtone.toml", ".env", "data/roomtone.db"])
def test_the_working_directory_comes_first_if_it_is_used(folders: Mapping[str, Path], mark: str) -> None:
    """A folder with settings or with a bot's memory is the one that is meant."""
    file = folders["working"] / mark
    file.parent.mkdir(exist_ok=True)
    file.touch()
    found = find_location(folders["working"], environ_of(folders), checkout=folders["checkout"])
    assert (found.folder, found.base) == (folders["working"], folders["working"])


@pytest.mark.parametrize("beneath", [".", "x" * 300])
def test_then_comes_the_checkout(folders: Mapping[str, Path], beneath: str) -> None:
    """From a folder without settings, and from one into which nobody can look: `sudo -u` leaves people in their own
    home, which the bot's user may not enter.
    """
    found = find_location(folders["working"] / beneath, environ_of(folders), checkout=folders["checkout"])
    assert (found.folder, found.file) == (folders["checkout"], folders["checkout"] / "roomtone.toml")


def test_an_installed_program_uses_the_users_folders(folders: Mapping[str, Path]) -> None:
    """Settings and data are apart, as XDG wants it. A relative XDG path is ignored."""
    found = find_location(folders["working"], environ_of(folders), checkout=None)
    assert (found.folder, found.base) == (folders["config"] / "roomtone", folders["data"] / "roomtone")
    usual = find_location(folders["working"], {"XDG_CONFIG_HOME": "relative"}, checkout=None)
    assert usual.folder == Path.home() / ".config" / "roomtone"


@pytest.mark.parametrize("name", ["{}", "{}/roomtone.toml"])
def test_what_is_named_wins(folders: Mapping[str, Path], name: str) -> None:
    """ROOMTONE_CONFIG names a file or its folder; `.env` and relative paths are beside it."""
    (folders["working"] / "roomtone.toml").touch()
    (folders["named"] / "roomtone.toml").touch()
    environ = environ_of(folders, ROOMTONE_CONFIG=name.format(folders["named"]))
    found = find_location(folders["working"], environ, checkout=folders["checkout"])
    assert found.file == folders["named"] / "roomtone.toml"
    assert found.folder == found.base == folders["named"]


def test_this_checkout_is_recognised() -> None:
    """The tests run from a checkout."""
    assert location.running_checkout() == Path(__file__).parents[2]


def test_relative_paths_start_at_the_settings(folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The defaults and the paths in the file and in `.env` belong to their folder. What somebody types in a shell
    belongs to the folder they are in.
    """
    here = folders["named"]
    monkeypatch.chdir(folders["working"])
    (here / "roomtone.toml").write_text('[storage]\ndata_dir = "mine"\n', "utf-8")
    environ = {"ROOMTONE_CONFIG": str(here)}
    settings = load(environ=environ)
    assert settings.storage.data_dir == here / "mine"
    assert settings.models.directory == here / "data" / "models"
    assert whisper_folder(settings.models, settings.asr) == here / "data" / "models" / "whisper-base"
    (here / ".env").write_text("ROOMTONE_MODELS__DIRECTORY=others\n", "utf-8")
    assert load(environ=environ).models.directory == here / "others"
    assert load(environ=environ, overrides={"storage.data_dir": "typed"}).storage.data_dir == Path("typed")
    typed = load(environ={**environ, "ROOMTONE_STORAGE__DATA_DIR": "typed"})
    assert typed.storage.data_dir == Path("typed")


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("", "elsewhere/whisper-base"),
        ('[asr]\nmodel = "whisper-small"', "elsewhere/whisper-small"),
        ('[asr]\nmodel = "/opt/mine"', "/opt/mine"),
        ('[asr]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "whisper-large-v3"', "elsewhere/whisper-base"),
    ],
)
def test_whisper_moves_with_the_other_models(tmp_path: Path, written: str, folder: str) -> None:
    """models.directory is the folder of every model; asr.model names the one that hears."""
    (tmp_path / "roomtone.toml").write_text(f'[models]\ndirectory = "elsewhere"\n{written}\n', "utf-8")
    settings = load(directory=tmp_path, environ={})
    assert whisper_folder(settings.models, settings.asr) == Path(folder)


def test_every_path_starts_at_the_settings_and_a_tilde_is_home(
    folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a shell, nobody else would make a home of `~`: the data would go into a folder of that name."""
    here, home = folders["named"], folders["working"] / "home"
    monkeypatch.chdir(folders["working"])
    monkeypatch.setenv("HOME", str(home))
    text = '[storage]\ndata_dir = "~/mine"\n[models]\ndirectory = "~nobody-at-all/x"\n'
    (here / "roomtone.toml").write_text(text, "utf-8")
    settings = load(environ={"ROOMTONE_CONFIG": str(here)})
    assert settings.storage.data_dir == home / "mine"
    assert settings.models.directory == here / "~nobody-at-all" / "x"
    assert load(directory=here, environ={}).storage.data_dir == home / "mine"
    typed = load(directory=here, environ={"ROOMTONE_STORAGE__DATA_DIR": "~/typed"})
    assert typed.storage.data_dir == home / "typed"


def test_the_home_of_nobody_is_a_path_that_does_not_exist(folders: Mapping[str, Path]) -> None:
    """In a variable and in the recogniser's folder too: it was taken for a defect of Roomtone."""
    settings = load(directory=folders["working"], environ={"ROOMTONE_ASR__MODEL": "~nobody-at-all/whisper"})
    assert whisper_folder(settings.models, settings.asr) == Path("~nobody-at-all/whisper")
    with pytest.raises(ConfigError, match="~nobody-at-all/x"):
        load(directory=folders["working"], environ={"ROOMTONE_CONFIG": "~nobody-at-all/x"})
