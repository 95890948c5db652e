"""What Ray's autoscaler asks, and how the pool that is in the cluster is read."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from bot.cluster import entry_points
from bot.cluster.address import ClusterError
from bot.cluster.deployment import RecogniserModels, deploy, deployed_pool, pool_app, scale
from bot.cluster.pool_settings import PoolSettings
from bot.cluster.state import APP, DEPLOYMENT, PoolState, machines_that_refuse, machines_with_work
from voice.asr.settings import AsrSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"oldest_wait_s": {"a": 0.0, "b": 1.5}, "busy_share": {"a": 0.9, "b": 1.0}}, 3),
        ({"oldest_wait_s": {"a": 0.0, "b": 0.0}, "busy_share": {"a": 0.1, "b": 0.1}}, 1),
        ({}, 2),
        (None, 2),
    ],
)
def test_the_autoscaler_follows_the_policy(reported: dict[str, dict[str, float]] | None, wanted: int) -> None:
    """What the recognisers report decides; without a report nothing changes."""
    context = SimpleNamespace(
        aggregated_metrics=reported,
        target_num_replicas=2,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=4,
    )
    assert scale(context) == (wanted, {})


class FakeServe:
    """Ray Serve with one deployment, which it keeps as Ray does: in bytes. `init_args`: what its replicas get."""

    def __init__(self, deployment: Any, init_args: tuple[object, ...] | None = None) -> None:
        from ray import cloudpickle

        self._new_versions = (f"v{number}" for number in itertools.count(1))
        self.keep(deployment)
        if init_args is not None:
            self._kept.init_args = cloudpickle.dumps(init_args)  # type: ignore[no-untyped-call]

    def keep(self, deployment: Any) -> None:
        """Have this deployment. One without a version gets a new one."""
        self._kept = deployment._replica_config.to_proto()
        self._version = deployment.version or next(self._new_versions)

    def get_deployment_info(self, name: str, app: str) -> tuple[Any, str]:
        """Return what Ray knows of the deployment."""
        from ray.serve._private.config import ReplicaConfig

        assert (name, app) == (DEPLOYMENT, APP)
        kept: Any = ReplicaConfig.from_proto_bytes(self._kept.SerializeToString())
        return SimpleNamespace(replica_config=kept, version=self._version), "/"

    def get_serve_details(self) -> dict[str, Any]:
        """Return what Ray Serve knows where the one machine takes speech."""
        return serve_details({"a": "HEALTHY"})


def serve_details(proxies: dict[str, str]) -> dict[str, Any]:
    """Return what Ray Serve tells. `proxies`: the state of what takes speech, by machine."""
    return {"proxies": {machine: {"status": status} for machine, status in proxies.items()}}


def let_machines_be(monkeypatch: pytest.MonkeyPatch, **alive: bool) -> None:
    """Let the cluster have these machines. One called `leaving` is drained."""
    nodes = [
        {"NodeID": name, "NodeManagerAddress": f"10.0.0.{number}", "Alive": runs}
        for number, (name, runs) in enumerate(alive.items(), start=1)
    ]
    monkeypatch.setattr("bot.cluster.state._nodes", lambda: (nodes, {"leaving": 1}))


def in_cluster(
    monkeypatch: pytest.MonkeyPatch, init_args: tuple[object, ...] | None = None, status: str = "RUNNING"
) -> None:
    """Let the cluster have `POOL`, or one whose recognisers are made with `init_args`."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    made: Any = pool_app({**asdict(POOL), "model_dir": str(MODEL)})

    async def app_status(name: str) -> str:
        assert name == entry_points.APP
        return status

    let_pool_be(monkeypatch, status)
    monkeypatch.setattr("bot.cluster.deployment.app_status", app_status)
    let_machines_be(monkeypatch, a=True)
    serve = FakeServe(made._bound_deployment, init_args)
    monkeypatch.setattr("ray.serve.context._get_global_client", lambda: serve)


def let_pool_be(monkeypatch: pytest.MonkeyPatch, status: str, running: int = 2, starting: int = 0) -> None:
    """Let Ray Serve tell this status of the pool, and that so many recognisers hear or start."""

    async def pool_state() -> PoolState:
        return PoolState(status, running=running, starting=starting, problem="")

    monkeypatch.setattr("bot.cluster.deployment.pool_state", pool_state)


def let_run(monkeypatch: pytest.MonkeyPatch, run: Callable[[Any, str], None], then: str = "RUNNING") -> None:
    """Let Ray Serve run each application, and its name, as `run` does, where one machine's process for HTTP never
    answers. It waits for the recognisers alone: an entry point that cannot start on one machine does not keep the
    others from hearing. `then`: the status of the pool afterwards.
    """

    def run_pool(app: Any, *, name: str, route_prefix: str) -> None:
        assert (name, route_prefix) == (APP, "/")
        run(app, name)
        from ray.serve.context import _get_global_client

        serve: Any = _get_global_client()
        serve.keep(app._bound_deployment)
        let_pool_be(monkeypatch, then)
        raise TimeoutError("Proxies not available after 60s.")

    def run_many(targets: Sequence[Any], **waits: bool) -> None:
        assert waits == {"wait_for_ingress_deployment_creation": False, "wait_for_applications_running": False}
        for target in targets:
            run(target.target, target.name)
        raise TimeoutError("Proxies not available after 60s.")

    monkeypatch.setattr("ray.serve.start", lambda **_: None)
    monkeypatch.setattr("ray.serve.run", run_pool)
    monkeypatch.setattr("ray.serve.run_many", run_many)


POOL = PoolSettings(least=2, most=8, cpus=0.5, gpus=0.25)
MODEL = Path("/models/whisper-base")
HEARS = RecogniserModels(AsrSettings(model_dir=MODEL), Path("/models/turn-text"))
# Of the deployment that is there, as Ray Serve has named it, and of another after it.
VERSION, NEXT_VERSION = "v1", "v2"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("pool", "status"), [(POOL, "RUNNING"), (MORE := replace(POOL, least=4, most=16), "RUNNING"), (MORE, "DEPLOYING")]
)
async def test_more_recognisers_leave_those_alone_that_hear(
    monkeypatch: pytest.MonkeyPatch, pool: PoolSettings, status: str
) -> None:
    """Nor is the number of a pool that has grown with the speech set back to the least."""
    in_cluster(monkeypatch, status=status)
    ran = pools_run(monkeypatch)
    await deploy(pool, HEARS)
    assert ran == [(VERSION, pool.least, pool.most)]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("pool", "model", "status"),
    [
        (POOL, MODEL, "DEPLOY_FAILED"),
        (POOL, MODEL, "UNHEALTHY"),
        (replace(POOL, batch=2), MODEL, "RUNNING"),
        (replace(POOL, gpus=0.0), MODEL, "RUNNING"),
        (POOL, Path("/models/whisper-small"), "RUNNING"),
    ],
)
async def test_other_recognisers_replace_those_that_hear_before_there_are_more(
    monkeypatch: pytest.MonkeyPatch, pool: PoolSettings, model: Path, status: str
) -> None:
    """Ray Serve replaces them one after the other, and ends none while another is missing. It tries what has failed
    again only as a new version.
    """
    in_cluster(monkeypatch, status=status)
    ran = pools_run(monkeypatch)
    await deploy(replace(pool, least=3), RecogniserModels(AsrSettings(model_dir=model), HEARS.text_end_folder))
    assert ran == [(None, 2, 2), (NEXT_VERSION, 3, pool.most)]


@pytest.mark.asyncio
@pytest.mark.parametrize(("starting", "first"), [(0, []), (1, [(None, 2, 2)])])
async def test_no_more_others_replace_those_that_hear_in_one_step(
    monkeypatch: pytest.MonkeyPatch, starting: int, first: list[tuple[str | None, int, int]]
) -> None:
    """Unless one more has been asked for before, and finds no room."""
    in_cluster(monkeypatch)
    let_pool_be(monkeypatch, "RUNNING", starting=starting)
    ran = pools_run(monkeypatch)
    await deploy(replace(POOL, gpus=1.0), HEARS)
    assert ran == [*first, (NEXT_VERSION if first else None, 2, 8)]


@pytest.mark.asyncio
@pytest.mark.parametrize("status", ["DEPLOY_FAILED", "DEPLOYING"])
async def test_where_nobody_hears_others_start_at_once(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    """There is nobody to replace."""
    in_cluster(monkeypatch, status=status)
    let_pool_be(monkeypatch, status, running=0)
    ran = pools_run(monkeypatch)
    pool = replace(POOL, gpus=1.0)
    await deploy(pool, HEARS)
    assert ran == [(None, pool.least, pool.most)]


@pytest.mark.asyncio
@pytest.mark.parametrize("pool", [POOL, MORE, replace(POOL, gpus=1.0)], ids=["same", "more", "others"])
async def test_the_pool_that_is_there_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, pool: PoolSettings) -> None:
    """Its state and its version: each question may take a cluster that is busy a while."""
    in_cluster(monkeypatch)
    asked: list[str] = []
    tell = FakeServe.get_deployment_info

    async def pool_state() -> PoolState:
        asked.append("state")
        return PoolState("RUNNING", running=2, starting=0, problem="")

    def get_deployment_info(serve: FakeServe, name: str, app: str) -> tuple[Any, str]:
        asked.append("version")
        return tell(serve, name, app)

    monkeypatch.setattr("bot.cluster.deployment.pool_state", pool_state)
    monkeypatch.setattr(FakeServe, "get_deployment_info", get_deployment_info)
    let_run(monkeypatch, lambda *_: asked.append("run"))
    await deploy(pool, HEARS)
    assert asked[:3] == ["state", "version", "run"]


@pytest.mark.asyncio
async def test_entry_points_that_failed_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other entry points some may fail with their machines, and Ray Serve tries again by itself."""
    for status, deleted in (("RUNNING", []), ("UNHEALTHY", []), ("DEPLOY_FAILED", [entry_points.APP])):
        in_cluster(monkeypatch, status=status)
        ran: list[str] = []
        let_run(monkeypatch, lambda *_: None)
        monkeypatch.setattr("ray.serve.delete", ran.append)
        await deploy(POOL, HEARS)
        assert ran == deleted


def pools_run(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, int, int]]:
    """Return the list of the pools that Ray Serve is asked for from now on: version, least and most."""
    ran: list[tuple[str | None, int, int]] = []

    def run(app: Any, name: str) -> None:
        if name == APP:
            deployment = app._bound_deployment
            autoscaling = deployment._deployment_config.autoscaling_config
            assert autoscaling.initial_replicas is None
            ran.append((deployment.version, autoscaling.min_replicas, autoscaling.max_replicas))

    let_run(monkeypatch, run)
    monkeypatch.setattr("ray.serve.delete", lambda _: None)
    return ran


@pytest.mark.asyncio
async def test_a_pool_of_another_release_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its recognisers are made with, and if nobody can read that."""
    others: list[tuple[object, ...]] = [(), ({}, 8), ("secret",)]
    for init_args in others:
        in_cluster(monkeypatch, init_args)
        ran = pools_run(monkeypatch)
        await deploy(POOL, HEARS)
        assert ran == [(None, POOL.least, POOL.most)]
    monkeypatch.setattr(FakeServe, "get_deployment_info", None)
    ran = pools_run(monkeypatch)
    await deploy(POOL, HEARS)
    assert ran == [(None, POOL.least, POOL.most)]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("proxies", "refuse"),
    [
        ({"a": "HEALTHY", "b": "HEALTHY"}, []),
        ({"a": "HEALTHY"}, ["10.0.0.2"]),
        ({"a": "STARTING", "b": "UNHEALTHY"}, ["10.0.0.1", "10.0.0.2"]),
        ({"a": "DRAINING", "b": "HEALTHY"}, []),
        ({}, ["10.0.0.1", "10.0.0.2"]),
    ],
)
async def test_a_machine_takes_speech_later(
    monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], refuse: list[str]
) -> None:
    """Ray Serve opens the port of a machine once it has an entry point. One that is gone or leaves needs none."""
    client = SimpleNamespace(get_serve_details=lambda: serve_details(proxies))
    monkeypatch.setattr("ray.serve.context._get_global_client", lambda: client)
    let_machines_be(monkeypatch, a=True, b=True, gone=False, leaving=True)
    assert await machines_that_refuse() == refuse
    assert machines_with_work() == 2


@pytest.mark.asyncio
async def test_recognisers_are_there_when_the_bots_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a machine whose bots never do is told by its address; the others go on, and so does who asked."""
    in_cluster(monkeypatch)
    let_run(monkeypatch, lambda *_: None)
    monkeypatch.setattr("bot.cluster.deployment._POLL_S", 0.0)
    told = [serve_details({"a": status}) for status in ("STARTING", "STARTING", "HEALTHY")]
    monkeypatch.setattr(FakeServe, "get_serve_details", lambda _: told.pop(0))
    assert await deploy(POOL, HEARS) == []
    assert told == []
    monkeypatch.setattr("bot.cluster.deployment.TAKES_SPEECH_POLLS", 3)
    monkeypatch.setattr(FakeServe, "get_serve_details", lambda _: serve_details({"a": "UNHEALTHY"}))
    assert await deploy(POOL, HEARS) == ["10.0.0.1"]
    monkeypatch.setattr(FakeServe, "get_serve_details", None)
    assert await deploy(POOL, HEARS) == []


@pytest.mark.asyncio
async def test_a_machine_that_does_not_answer_fails_no_pool_that_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Serve waits a minute for each machine's process for HTTP, for the recognisers and for the entry points."""
    in_cluster(monkeypatch, status="UNHEALTHY")
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name))
    assert await deploy(POOL, HEARS) == []
    assert ran == [APP, entry_points.APP]


@pytest.mark.asyncio
@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_first_machine_that_does_not_answer_fails_no_pool_that_hears(
    monkeypatch: pytest.MonkeyPatch, *, is_silent: bool
) -> None:
    """Ray Serve waits for it at its own start, before there are recognisers. By then Ray Serve runs."""
    from ray.exceptions import RayError

    in_cluster(monkeypatch)
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name))
    error = TimeoutError("HTTP proxies not available after 60s.") if is_silent else RayError("The port is in use.")
    monkeypatch.setattr("ray.serve.start", Mock(side_effect=error))
    monkeypatch.setattr("bot.cluster.deployment._POLL_S", 0.0)
    monkeypatch.setattr(FakeServe, "get_serve_details", lambda _: serve_details({"a": "UNHEALTHY"}))
    assert await deploy(POOL, HEARS) == ["10.0.0.1"]
    assert ran == [APP, entry_points.APP]


@pytest.mark.asyncio
async def test_a_pool_that_hears_when_the_time_is_over_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines' processes for HTTP may each have taken a minute of it. A pool that is not as asked for is one."""
    in_cluster(monkeypatch)
    let_run(monkeypatch, lambda *_: None)
    late = Mock(side_effect=TimeoutError)
    monkeypatch.setattr("bot.cluster.deployment._run", late)
    assert await deploy(POOL, HEARS) == []
    with pytest.raises(ClusterError, match="Give the command again"):
        await deploy(replace(POOL, most=16), HEARS)


@pytest.mark.asyncio
@pytest.mark.parametrize("then", ["DEPLOYING", "UNHEALTHY"])
async def test_a_pool_that_does_not_hear_in_time_is_told(monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """Whatever the time ran out for. Nothing needs an entry point then."""
    in_cluster(monkeypatch)
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name), then)
    with pytest.raises(ClusterError, match="were not ready within 300 s"):
        await deploy(POOL, HEARS)
    assert ran == [APP]


@pytest.mark.asyncio
async def test_a_cluster_that_does_not_tell_its_state_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model has nothing to do with it, and nothing is started."""

    async def silent() -> PoolState:
        raise ClusterError("The cluster does not tell its state.")

    in_cluster(monkeypatch)
    monkeypatch.setattr("bot.cluster.deployment.pool_state", silent)
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name))
    with pytest.raises(ClusterError, match="does not tell its state"):
        await deploy(POOL, HEARS)
    assert ran == []


@pytest.mark.asyncio
async def test_entry_points_whose_state_nobody_tells_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked only once the recognisers hear."""

    async def silent(_: str) -> str:
        raise ClusterError("The cluster does not tell its state.")

    in_cluster(monkeypatch)
    monkeypatch.setattr("bot.cluster.deployment.app_status", silent)
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name))
    assert await deploy(POOL, HEARS) == []
    assert ran == [APP, entry_points.APP]


@pytest.mark.asyncio
async def test_entry_points_that_are_slow_to_go_are_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else no machine would have any."""

    def delete(name: str) -> None:
        ran.append(f"without {name}")
        raise TimeoutError("Some of these applications weren't deleted after 60s")

    in_cluster(monkeypatch, status="DEPLOY_FAILED")
    ran: list[str] = []
    let_run(monkeypatch, lambda _, name: ran.append(name))
    monkeypatch.setattr("ray.serve.delete", delete)
    assert await deploy(POOL, HEARS) == []
    assert ran[-2:] == [f"without {entry_points.APP}", entry_points.APP]


@pytest.mark.asyncio
async def test_entry_points_that_are_refused_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as recognisers that could not be started: those hear."""

    def refuse(_: Any, name: str) -> None:
        if name == entry_points.APP:
            raise RuntimeError("refused")

    in_cluster(monkeypatch)
    let_run(monkeypatch, refuse)
    with pytest.raises(ClusterError, match="The recognisers hear, but"):
        await deploy(POOL, HEARS)


@pytest.mark.asyncio
async def test_a_pool_is_read_as_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that the number of utterances at once was left to the device."""
    in_cluster(monkeypatch)
    assert await deployed_pool() == POOL


@pytest.mark.asyncio
@pytest.mark.parametrize("init_args", [({}, 8), (), ({}, "secret", {}), ({}, {"threads": 2}), ({}, {"most": 0})])
async def test_what_another_release_has_put_there_is_told(
    monkeypatch: pytest.MonkeyPatch, init_args: tuple[object, ...]
) -> None:
    """Its recognisers are made with something else, so the operator has to say what they reserve."""
    in_cluster(monkeypatch, init_args)
    with pytest.raises(ClusterError, match="--cpus and --gpus that each reserves, and --batch"):
        await deployed_pool()


@pytest.mark.asyncio
async def test_a_cluster_without_a_pool_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then `scale` makes the first one."""

    async def no_pool() -> None:
        return None

    monkeypatch.setattr("bot.cluster.deployment.pool_state", no_pool)
    assert await deployed_pool() is None
