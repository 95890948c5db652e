"""Puts the recogniser pool into the cluster.

Each node serves the pool on its own loopback address: a bot asks the node that it runs on, and Ray passes the
request on to a free recogniser, wherever that is, over connections that ask for the cluster's token. The bot itself is
no part of the cluster. If it were, Ray would end its process a minute after the cluster's head is lost.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.cluster import entry_points
from bot.cluster.address import POOL_IP, POOL_PORT, ClusterError, told
from bot.cluster.pool_settings import PoolSettings
from bot.cluster.scaling import wanted_recognisers
from bot.cluster.state import APP, DEPLOYMENT, app_status, machines_that_refuse, pool_state
from bot.errors import SetupError
from bot.models.catalogue import TURN_TEXT
from voice.asr.scheduler import QUEUE_SIZE
from voice.asr.settings import AsrSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ray.serve import Application

    from bot.cluster.state import PoolState

# Seconds in which all first recognisers must have loaded their models.
DEPLOY_TIMEOUT_S = 300.0
# Speech must wait this long before a recogniser is added. Loading a model takes seconds, so a short peak gains nothing.
UPSCALE_DELAY_S = 3.0
# Voice channels fill and empty within minutes.
DOWNSCALE_DELAY_S = 120.0
METRICS_INTERVAL_S = 1.0
LOOK_BACK_S = 5.0
# Seconds that a recogniser that is removed has for the utterances it already has.
DRAIN_S = 10.0
# After that, the bots of every machine must reach the pool within a minute. Ray Serve tells nobody.
_POLL_S = 0.5
TAKES_SPEECH_POLLS = 120
# Of the application, as Ray Serve calls them: a pool that hears, and one that is being changed.
_RUNNING = "RUNNING"
_AS_ASKED_FOR = frozenset({_RUNNING, "DEPLOYING"})
# One of which no replica could be started. It is left so until it is deployed anew.
_FAILED = "DEPLOY_FAILED"
# Fields of `PoolSettings` that say nothing of a single recogniser.
_HOW_MANY = frozenset({"least", "most"})
_UNREADABLE = (
    "The cluster does not tell what its recognisers reserve. Give all three: --cpus and --gpus that each reserves, and "
    "--batch."
)


@dataclass(frozen=True, slots=True)
class RecogniserModels:
    """The models of each recogniser. `text_end_folder`: of the one that reads what was recognised, where a node has it;
    None: none does.
    """

    asr: AsrSettings
    text_end_folder: Path | None = None


async def deploy(pool: PoolSettings, models: RecogniserModels) -> list[str]:
    """Put the pool into the cluster, or change the one that is there. Returns when its first recognisers hear, and the
    bots of every machine reach them; with the addresses of the machines whose bots do not.

    Every node needs the model at `models.asr.model_dir`. Raises `ClusterError`.
    """
    await _start_recognisers(pool, models)
    await _start_entry_points()
    return await _left_out()


async def _start_recognisers(pool: PoolSettings, models: RecogniserModels) -> None:
    from ray import serve
    from ray.exceptions import RayError

    try:
        async with asyncio.timeout(DEPLOY_TIMEOUT_S):
            # Where its first process for HTTP does not answer within a minute, or finds the port taken. Ray Serve runs
            # all the same.
            with suppress(TimeoutError, RayError):
                await asyncio.to_thread(
                    serve.start, proxy_location="EveryNode", http_options={"host": POOL_IP, "port": POOL_PORT}
                )
            await _change(pool, models)
    except TimeoutError as error:
        # Machines' processes for HTTP that do not answer may have taken all of it.
        if await _hears() and await deployed_pool() == pool:
            return
        raise ClusterError(
            f"The recognisers were not ready within {DEPLOY_TIMEOUT_S:g} s. `roomtone cluster status` says what they "
            "wait for; a node needs free CPUs or GPUs, and the model. Give the command again when it has them."
        ) from error
    except ClusterError:
        # The cluster does not tell its state: nothing was started.
        raise
    except Exception as error:
        raise ClusterError(
            "The recognisers could not be started. Has every node the model (`roomtone models pull`) at "
            f"{models.asr.model_dir.absolute()}, and as many CPUs or GPUs as asked for? Ray's log has more."
        ) from error


async def _change(pool: PoolSettings, models: RecogniserModels) -> None:
    """Make the pool that is there, if there is one, into this one.

    Where there will be more recognisers, and others, first those that hear are replaced, one after the other, at their
    number. While one is missing Ray Serve ends no other, so two with half a GPU each would never become three with a
    third of it: the third would wait for one of the two to end, and they for the third.
    """
    state = await pool_state()
    version = await _version_to_keep(state, pool, models)
    if version is None and state is not None and state.running and (pool.least > state.running or state.starting):
        number = min(state.running, pool.most)
        await _run(replace(pool, least=number, most=number), models, None)
        version = await _version_to_keep(await pool_state(), pool, models)
    await _run(pool, models, version)


async def _run(pool: PoolSettings, models: RecogniserModels, version: str | None) -> None:
    """Put the pool into the cluster, and wait until it is as asked for. `version`: see `_version_to_keep`.

    Raises `TimeoutError` if it never is, `ClusterError`, and what Ray raises.
    """
    from ray import serve

    try:
        await asyncio.to_thread(serve.run, _application(pool, models, version), name=APP, route_prefix="/")
    except TimeoutError:
        # A machine's process for HTTP that does not answer Ray Serve within a minute fails no pool: it is `_left_out`.
        if not await _hears():
            raise


async def _hears() -> bool:
    """Return whether the pool is as it was asked for. Raises `ClusterError`."""
    state = await pool_state()
    return state is not None and state.status == _RUNNING


async def _start_entry_points() -> None:
    """Have each machine get an entry point. Waits for none: a machine that cannot have one is `_left_out`.

    Raises `ClusterError`.
    """
    have_failed = False
    with suppress(ClusterError):
        have_failed = await app_status(entry_points.APP) == _FAILED
    try:
        async with asyncio.timeout(DEPLOY_TIMEOUT_S):
            await asyncio.to_thread(_run_entry_points, have_failed=have_failed)
    except Exception as error:
        raise ClusterError(
            "The recognisers hear, but Ray Serve did not take the entry points by which each machine's bots reach "
            "them. Ray's log has more."
        ) from error


async def _left_out() -> list[str]:
    """Return the addresses of the machines whose bots still do not reach the pool after a while.

    It hears for the others all the same, so nothing of this is a failure.
    """
    refuse: list[str] = []
    with suppress(ClusterError):
        for _ in range(TAKES_SPEECH_POLLS):
            refuse = await machines_that_refuse()
            if not refuse:
                break
            await asyncio.sleep(_POLL_S)
    return refuse


def _run_entry_points(*, have_failed: bool) -> None:
    """`have_failed`: none could be started, and Ray Serve tries it no more."""
    from ray import serve

    target = serve.RunTarget(entry_points.entry_points(), name=entry_points.APP, route_prefix=None)
    # Ray Serve gives up after a minute: on deleting them, which it goes on with, and where a machine's process for HTTP
    # does not answer.
    with suppress(TimeoutError):
        if have_failed:
            serve.delete(entry_points.APP)
    with suppress(TimeoutError):
        serve.run_many([target], wait_for_ingress_deployment_creation=False, wait_for_applications_running=False)


async def _version_to_keep(state: PoolState | None, pool: PoolSettings, models: RecogniserModels) -> str | None:
    """Return the version of the pool that is there if its recognisers are made as these would be, and nothing is wrong
    with them; else None, also if nobody can read what they are made with. `state`: the pool's.

    Ray Serve then leaves those alone that hear, and only starts or ends some. To a new version it changes one after the
    other, in the midst of speech; and one that has failed it tries again only as a new version.
    """
    if state is None or state.status not in _AS_ASKED_FOR:
        return None
    with suppress(ClusterError):
        version, arguments = await told(_deployed, _UNREADABLE)
        return version if _made_of(arguments) == _made_of(_replica_arguments(pool, models)) else None
    return None


async def deployed_pool() -> PoolSettings | None:
    """Return the pool that is in the cluster as it was asked for; None if there is none.

    Raises `ClusterError`, also for a pool that another release of Roomtone has put there.
    """
    if await pool_state() is None:
        return None
    _, arguments = await told(_deployed, _UNREADABLE)
    try:
        _, fields, *_ = arguments
        return PoolSettings(**fields)
    except (TypeError, ValueError, SetupError) as error:
        raise ClusterError(_UNREADABLE) from error


def _deployed() -> tuple[str, Sequence[Any]]:
    """Return the version of the pool that is there, and what each recogniser is made with."""
    from ray.serve.context import _get_global_client

    client: Any = _get_global_client()
    deployment, _ = client.get_deployment_info(DEPLOYMENT, APP)
    return deployment.version, deployment.replica_config.init_args


def _replica_arguments(pool: PoolSettings, models: RecogniserModels) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return what each recogniser is made with (`RecogniserReplica`)."""
    asr, read = models.asr, models.text_end_folder
    here = asr.model_copy(update={"model_dir": asr.model_dir.absolute(), "device": pool.device})
    return (
        here.model_dump(mode="json", exclude={"api_key"}),
        asdict(pool),
        "" if read is None else str(read.absolute()),
    )


def _made_of(arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments of a recogniser without what says how many there are. Those of another release may have any
    form.
    """
    return [
        {name: value for name, value in each.items() if name not in _HOW_MANY} if isinstance(each, dict) else each
        for each in arguments
    ]


def pool_app(arguments: dict[str, Any]) -> Application:
    """Return the pool as Ray Serve's own configuration names it, on Kubernetes for example (deploy/kuberay.yaml).

    `arguments`: the fields of `PoolSettings`, and `model_dir`, the model's folder on every node; the model that reads
    what was recognised is beside it. Raises `ClusterError` where Ray asks for no token (RAY_AUTH_TOKEN), and
    `SetupError` for numbers that make no pool.
    """
    if not os.environ.get("RAY_AUTH_TOKEN"):
        raise ClusterError("RAY_AUTH_TOKEN is empty: recognisers without the cluster's token would hear everybody.")
    model_dir = Path(arguments["model_dir"])
    pool = PoolSettings(**{name: value for name, value in arguments.items() if name != "model_dir"})
    models = RecogniserModels(AsrSettings(model_dir=model_dir), model_dir.parent / TURN_TEXT.name)
    return _application(pool, models, None)


def _application(pool: PoolSettings, models: RecogniserModels, version: str | None) -> Application:
    from ray import serve
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

    from bot.cluster.replica import RecogniserReplica

    autoscaling = AutoscalingConfig(
        min_replicas=pool.least,
        max_replicas=pool.most,
        metrics_interval_s=METRICS_INTERVAL_S,
        look_back_period_s=LOOK_BACK_S,
        upscale_delay_s=UPSCALE_DELAY_S,
        downscale_delay_s=DOWNSCALE_DELAY_S,
        policy=AutoscalingPolicy(  # type: ignore[no-untyped-call]
            policy_function="bot.cluster.deployment:scale"
        ),
    )
    as_deployment = serve.deployment(
        name=DEPLOYMENT,
        autoscaling_config=autoscaling,
        # More would only wait in another queue, out of sight of `scaling`.
        max_ongoing_requests=QUEUE_SIZE,
        graceful_shutdown_timeout_s=DRAIN_S,
        ray_actor_options={
            "num_cpus": pool.cpus,
            "num_gpus": pool.gpus,
            # As in bot.__main__ (voice.asr.whisper).
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}},
        },
    )
    recogniser = as_deployment(RecogniserReplica)
    if version is not None:
        recogniser = recogniser.options(version=version, _internal=True)
    return recogniser.bind(*_replica_arguments(pool, models))


def scale(context: Any) -> tuple[int, dict[str, Any]]:
    """Ray Serve's autoscaling policy: `scaling.wanted_recognisers` on what the recognisers report."""
    reported = context.aggregated_metrics or {}
    wanted = wanted_recognisers(
        list(reported.get("oldest_wait_s", {}).values()),
        list(reported.get("busy_share", {}).values()),
        running=max(1, context.target_num_replicas),
        least=context.capacity_adjusted_min_replicas,
        most=context.capacity_adjusted_max_replicas,
    )
    return wanted, {}
