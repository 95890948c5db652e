"""`roomtone cluster`: whole bots by shards and a recogniser service on several machines, through Ray."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError

from bot.cli.output import say
from bot.errors import SetupError
from compaction.errors import StoreError
from config.load import load
from voice.endpoint_settings import is_this_machine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from bot.cluster.recogniser_service import ServiceSettings
    from config.schema import Settings

# Within the data folder: the cluster's token, Ray's output, and the process of `cluster up`.
CLUSTER_FOLDER = "cluster"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

app = typer.Typer(
    help="Run the bot on several machines.",
    no_args_is_help=True,
)


@app.command()
def up(
    shards: Annotated[int, typer.Option(min=0, help="Into how many shards the servers are divided; 0: no bots.")] = 0,
    groups: Annotated[int, typer.Option(min=1, help="How many processes serve them.")] = 1,
    bot_cpus: Annotated[float, typer.Option(min=0, help="CPUs that each of these reserves.")] = 1.0,
    recognisers: Annotated[
        str, typer.Option(metavar="MIN-MAX", help="How many recognisers there are at least and at most; 0: none.")
    ] = "0",
    cpus: Annotated[float, typer.Option(help="CPUs that each recogniser reserves.")] = 1.0,
    gpus: Annotated[float, typer.Option(help="GPUs that each recogniser reserves; 0.25 lets four share one.")] = 0.0,
    model: Annotated[str, typer.Option(help="The recognisers' model, in models.directory.")] = "whisper-base",
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the first machine answers for them.")
    ] = "127.0.0.1:8571",
    certificate: Annotated[str, typer.Option(metavar="FILE", help="TLS certificate of that address.")] = "",
    certificate_key: Annotated[str, typer.Option(metavar="FILE", help="Its key.")] = "",
    ip: Annotated[str, typer.Option(help="The first machine's address, for the commands that are shown.")] = "",
) -> None:
    """Start or change the bots and the recognisers.

    It also writes the files for Ray's own commands.
    """
    from bot.cluster.deployment import keep_groups, serve_config, serve_recogniser
    from bot.cluster.ray_access import ClusterError, start_commands, write_ray_files
    from bot.cluster.shard_groups import divided

    settings = load()
    wanted = divided(shards, groups) if shards else []
    if wanted and settings.storage.database_url is None:
        raise SetupError("Bots on several machines share a PostgreSQL database: set ROOMTONE_DATABASE_URL.")
    http = _http_options(listen, certificate, certificate_key)
    service = _service(settings, recognisers, {"cpus": cpus, "gpus": gpus}, model, str(http["host"]))
    folder = settings.storage.data_dir / CLUSTER_FOLDER
    write_ray_files(folder, {} if service is None else serve_config(service, http))
    try:
        with _connected(settings):
            if service is not None:
                serve_recogniser(service, http)
            keep_groups(wanted, cpus=bot_cpus)
    except ClusterError as error:
        first, other = start_commands(folder, ip or "127.0.0.1")
        raise SetupError(
            f"{error} If Ray does not run here yet, start it on the first machine:\n  {first}\nOn each other one, "
            f"after {folder} was copied there:\n  {other}\nThen give this command again."
        ) from error
    say("`roomtone cluster status` shows who serves what.")


@app.command()
def status() -> None:
    """Show who serves which shards, and what nobody serves."""
    from bot.cluster.deployment import cluster_lines, group_states, unserved_lines
    from bot.store.database import describe_database

    settings = load()
    with _connected(settings):
        lines = cluster_lines(group_states())
    if settings.storage.database_url is not None:
        try:
            lines += unserved_lines(describe_database(settings.storage.database_url).running)
        except StoreError as error:
            lines.append(str(error))
    for line in lines:
        say(line)


@app.command()
def drain(
    ip: Annotated[str, typer.Argument(metavar="IP", help="The machine's address, as `status` shows it.")],
) -> None:
    """Move a machine's shards to other machines.

    Room by room at a pause in speech, so that the machine can be switched off.
    """
    from bot.cluster.deployment import drain as drain_machine

    with _connected(load()):
        for line in drain_machine(ip):
            say(line)


@app.command()
def down() -> None:
    """End the bots and the recognisers; Ray goes on."""
    from bot.cluster.deployment import end_everything

    with _connected(load()):
        for line in end_everything():
            say(line)


def _connected(settings: Settings) -> AbstractContextManager[None]:
    from bot.cluster.ray_access import connected

    return connected(settings.storage.data_dir / CLUSTER_FOLDER)


def _service(
    settings: Settings, recognisers: str, reserves: Mapping[str, float], model: str, host: str
) -> ServiceSettings | None:
    """Return the service of the command line; None: there is none. Raises `SetupError`."""
    from bot.cluster.recogniser_service import KEY_VARIABLE, ServiceSettings

    match = _RANGE.fullmatch(recognisers.strip())
    if match is None:
        raise SetupError(f"{recognisers!r} is not a number of recognisers. Give them as MIN-MAX, for example 1-4.")
    least, most = int(match[1]), int(match[2] or match[1])
    if not most:
        return None
    if settings.asr.api_key is None and not is_this_machine(host):
        raise SetupError(f"Whoever reaches {host} would be heard. Set a key of your own: {KEY_VARIABLE}.")
    folder = (settings.models.directory / model).absolute()
    try:
        return ServiceSettings(
            model_dir=str(folder), least=least, most=most, asks_for_key=settings.asr.api_key is not None, **reserves
        )
    except ValidationError as error:
        raise SetupError(f"This makes no recogniser service: {error.errors()[0]['msg']}.") from error


def _http_options(listen: str, certificate: str, key: str) -> dict[str, Any]:
    """Return Ray Serve's options for its address. Raises `SetupError`."""
    wrong = SetupError(f"{listen!r} is not an address. Give --listen as HOST:PORT, for example 10.0.0.1:8571.")
    try:
        where = urlsplit(f"//{listen}")
        host, port = where.hostname, where.port
    except ValueError as error:
        raise wrong from error
    # Not a part of a URL that somebody has pasted.
    if not host or not port or where.netloc != listen or where.username is not None:
        raise wrong
    tls = {"ssl_certfile": certificate, "ssl_keyfile": key} if certificate else {}
    return {"host": host, "port": port, **tls}
