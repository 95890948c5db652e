"""deploy/kuberay.yaml fits Ray, the image and the code. Nothing here has a Kubernetes, so it was never applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bot.cli.environment import CLUSTER_FOLDER
from bot.cluster.address import POOL_PORT, TOKEN_FILE, ClusterError, pool_endpoint
from bot.cluster.deployment import DRAIN_S, pool_app
from bot.cluster.node import RAY_ENVIRONMENT
from bot.cluster.pool_settings import PoolSettings
from bot.cluster.state import APP, DEPLOYMENT
from bot.models.catalogue import TURN_TEXT, WHISPER_BASE, find_model
from config.sources import Variable, read_variables
from tests.deploy import dockerfile
from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ALL: list[dict[str, Any]] = list(yaml.safe_load_all((REPOSITORY / "deploy" / "kuberay.yaml").read_text("utf-8")))
DOCUMENTS = {document["kind"]: document for document in ALL}
POLICIES = {document["metadata"]["name"]: document["spec"] for document in ALL if document["kind"] == "NetworkPolicy"}
CLUSTER: dict[str, Any] = DOCUMENTS["RayService"]["spec"]["rayClusterConfig"]
POOL: dict[str, Any] = yaml.safe_load(DOCUMENTS["RayService"]["spec"]["serveConfigV2"])
BOT: dict[str, Any] = DOCUMENTS["Deployment"]["spec"]["template"]
STAGES = dockerfile.read((REPOSITORY / "Dockerfile").read_text("utf-8"))
WORKERS: dict[str, dict[str, Any]] = {group["groupName"]: group for group in CLUSTER["workerGroupSpecs"]}
GROUPS = [CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]]


def runtime_environment() -> dict[str, str]:
    """Return the variables of the image."""
    found = {"PATH": ""}
    for step in STAGES["runtime"].steps:
        if step.keyword == "ENV":
            found |= dockerfile.environment(step.text, found)
    return found


def pods_in(part: object) -> list[dict[str, Any]]:
    """Return every pod's specification below a part of a manifest."""
    if isinstance(part, list):
        return [pod for each in part for pod in pods_in(each)]
    if not isinstance(part, dict):
        return []
    return [part] if "containers" in part else [pod for each in part.values() for pod in pods_in(each)]


PODS = pods_in(ALL)


def containers() -> list[dict[str, Any]]:
    """Return every container of every pod."""
    return [each for pod in PODS for each in (*pod.get("initContainers", ()), *pod["containers"])]


def test_ray_takes_the_configuration_of_the_pool() -> None:
    """Ray Serve's own schema accepts it, and the application and its port are those that `cluster up` makes."""
    from ray.serve.schema import ServeDeploySchema

    read = ServeDeploySchema.model_validate(POOL)
    [application] = read.applications
    assert (application.name, application.route_prefix) == (APP, "/")
    assert application.import_path == f"{pool_app.__module__}:{pool_app.__name__}"
    assert read.http_options.port == POOL_PORT


def test_the_pool_is_made_of_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray calls `pool_app` with what the file says; the deployment has these bounds and this model."""
    from ray.serve._private.api import call_user_app_builder_with_args_if_necessary

    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    [application] = POOL["applications"]
    builder: Any = pool_app
    made = call_user_app_builder_with_args_if_necessary(builder, application["args"])._bound_deployment
    assert made.name == DEPLOYMENT
    config = made._deployment_config.autoscaling_config
    assert config is not None
    assert (config.min_replicas, config.max_replicas) == (2, 8)
    init_args: tuple[Any, ...] = made.init_args
    settings, pool, text_end_folder = init_args
    assert settings["model_dir"] == f"{runtime_environment()['ROOMTONE_MODELS__DIRECTORY']}/{WHISPER_BASE.name}"
    assert settings["device"] == "cpu"
    assert text_end_folder == f"{runtime_environment()['ROOMTONE_MODELS__DIRECTORY']}/{TURN_TEXT.name}"
    assert PoolSettings(**pool) == PoolSettings(least=2, most=8)


def test_without_a_token_there_is_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without authentication is refused before anybody's speech gets there."""
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with pytest.raises(ClusterError, match="RAY_AUTH_TOKEN"):
        pool_app(POOL["applications"][0]["args"])


def test_the_workers_have_room_for_the_recognisers() -> None:
    """As many workers as recognisers at least and at most, each with CPUs for one; the head takes none."""
    arguments = {**POOL["applications"][0]["args"]}
    del arguments["model_dir"]
    pool = PoolSettings(**arguments)
    workers = WORKERS["recognisers"]
    assert (workers["minReplicas"], workers["maxReplicas"]) == (pool.least, pool.most)
    assert float(workers["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]) >= pool.cpus
    assert CLUSTER["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert workers["template"]["spec"]["terminationGracePeriodSeconds"] > 2 * DRAIN_S


def test_the_image_is_the_dockerfiles_and_has_ray() -> None:
    """Every container runs the target `cluster`, which has the extra; no other target has it."""
    assert {container["image"] for container in containers()} == {"roomtone:cluster"}
    assert "COPY --from=build-cluster" in f"{STAGES['cluster'].steps[0].keyword} {STAGES['cluster'].steps[0].text}"
    [install] = [step.text for step in STAGES["build-cluster"].steps if step.keyword == "RUN"]
    assert "--all-extras" in install
    assert "--no-extra cluster" not in install
    assert STAGES["cluster"].base == STAGES["cpu"].base == "runtime"
    assert STAGES["cluster"].last("USER") == "10001:10001"
    assert {(pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) for pod in PODS} == {
        (10001, 10001)
    }


def test_ray_is_the_version_that_is_locked() -> None:
    """KubeRay picks its behaviour by the version, which must be the image's."""
    lock = (REPOSITORY / "uv.lock").read_text("utf-8")
    assert f'name = "ray"\nversion = "{CLUSTER["rayVersion"]}"' in lock


def test_models_are_where_the_image_looks() -> None:
    """Each Ray pod downloads the models of the pool before Ray starts, into a folder that the container has too."""
    for group in GROUPS:
        pod = group["template"]["spec"]
        models = pod["initContainers"][0]
        assert models["command"][:3] == ["roomtone", "models", "pull"]
        assert [find_model(name) for name in models["command"][3:]] == [WHISPER_BASE, TURN_TEXT]
        mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert runtime_environment()["ROOMTONE_STORAGE__DATA_DIR"] in mounts


def test_the_bot_asks_the_pool_with_its_token(tmp_path: Path) -> None:
    """KubeRay's service for the RayService, the pool's port, and the secret at the place where the bot looks."""
    [bot] = BOT["spec"]["containers"]
    where = bot["args"][bot["args"].index("--cluster") + 1]
    assert where == f"{DOCUMENTS['RayService']['metadata']['name']}-serve-svc:{POOL_PORT}"
    (tmp_path / TOKEN_FILE).write_text("secret", "ascii")
    assert pool_endpoint(where, tmp_path).base_url == f"http://{where}/v1"
    [token] = [volume["secret"] for volume in BOT["spec"]["volumes"] if volume["name"] == "token"]
    assert token["secretName"] == CLUSTER["authOptions"]["secretName"]
    assert token["items"] == [{"key": "auth_token", "path": TOKEN_FILE}]
    [mount] = [mount for mount in bot["volumeMounts"] if mount["name"] == "token"]
    assert mount["mountPath"] == f"{runtime_environment()['ROOMTONE_STORAGE__DATA_DIR']}/cluster"
    assert str(bot["ports"][0]["containerPort"]) == runtime_environment()["ROOMTONE_WEB__PORT"]


def test_ray_has_the_token() -> None:
    """Each pod copies it to where Ray looks, and has Ray's variables."""
    for group in GROUPS:
        pod = group["template"]["spec"]
        token = pod["initContainers"][1]
        environment = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
        where = environment["RAY_AUTH_TOKEN_PATH"]
        assert where == f"{runtime_environment()['ROOMTONE_STORAGE__DATA_DIR']}/{CLUSTER_FOLDER}/{TOKEN_FILE}"
        assert token["command"][-1].endswith(f"cp {token['volumeMounts'][1]['mountPath']}/auth_token {where}")
        assert RAY_ENVIRONMENT.items() <= environment.items()


def test_speech_goes_to_no_pod_that_does_not_answer() -> None:
    """KubeRay's service for the pool has all workers that are ready, and only those with a recogniser listen there. The
    head always does, and is asked for its Ray alone: without it KubeRay gives it no configuration of the pool.
    """
    for group in GROUPS:
        container = group["template"]["spec"]["containers"][0]
        asked = container["readinessProbe"]["exec"]["command"][-1]
        is_head = group is CLUSTER["headGroupSpec"]
        assert (f"http://127.0.0.1:{POOL_PORT}/-/healthz" in asked) is not is_head
        assert "/api/local_raylet_healthz" in container["livenessProbe"]["exec"]["command"][-1]


def test_only_the_bot_reaches_the_pool() -> None:
    """The network policy chooses the pool's pods, and lets the bot's through to the pool's port alone."""
    policy = POLICIES["roomtone-pool"]
    labels = policy["podSelector"]["matchLabels"]
    assert all(group["template"]["metadata"]["labels"] == labels for group in GROUPS)
    [to_port] = [rule for rule in policy["ingress"] if "ports" in rule]
    assert to_port["from"][0]["podSelector"]["matchLabels"] == BOT["metadata"]["labels"]
    assert [port["port"] for port in to_port["ports"]] == [POOL_PORT]


@pytest.mark.parametrize("container", containers(), ids=lambda container: str(container["name"]))
def test_every_container_is_in_bounds(container: dict[str, Any]) -> None:
    """Without capabilities and new privileges."""
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_only_what_is_allowed_reaches_the_bot() -> None:
    """Who has the label reaches its pages, and nobody anything else."""
    policy = POLICIES["roomtone-bot"]
    assert policy["podSelector"]["matchLabels"] == BOT["metadata"]["labels"]
    [web] = policy["ingress"]
    [label] = web["from"][0]["podSelector"]["matchLabels"].items()
    assert ": ".join(label) in (REPOSITORY / "docs" / "cluster.md").read_text("utf-8")
    [bot] = BOT["spec"]["containers"]
    assert web["ports"] == [{"protocol": "TCP", "port": port["containerPort"]} for port in bot["ports"]]


def test_a_service_is_not_taken_for_a_setting() -> None:
    """Kubernetes gives each container variables for every Service of the namespace, which the settings refuse, unless
    the pod says no.
    """
    name = f"{DOCUMENTS['RayService']['metadata']['name']}-serve-svc"
    variable = f"{name.upper().replace('-', '_')}_PORT"
    assert read_variables([Variable(variable, "tcp://10.96.0.7:8571", "environment")]).problems
    assert len(PODS) == len(GROUPS) + 1
    assert [pod.get("enableServiceLinks") for pod in PODS] == [False] * len(PODS)


def test_one_bot_at_a_time() -> None:
    """Two bots of one token would answer twice."""
    assert DOCUMENTS["Deployment"]["spec"]["replicas"] == 1
    assert DOCUMENTS["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
