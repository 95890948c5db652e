"""deploy/kuberay.yaml fits Ray, the image and the code. Nothing here has a Kubernetes, so it was never applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.cluster.deployment import PORT
from bot.cluster.recogniser_service import APP, KEY_VARIABLE, ServiceSettings, application
from bot.models.catalogue import WHISPER_BASE, find_model
from config.load import load
from tests.deploy import dockerfile
from tests.scenarios.program import REPOSITORY

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ALL: list[dict[str, Any]] = list(yaml.safe_load_all((REPOSITORY / "deploy" / "kuberay.yaml").read_text("utf-8")))
DOCUMENTS = {document["kind"]: document for document in ALL}
POLICIES = {document["metadata"]["name"]: document["spec"] for document in ALL if document["kind"] == "NetworkPolicy"}
CLUSTER: dict[str, Any] = DOCUMENTS["RayService"]["spec"]["rayClusterConfig"]
SERVICE: dict[str, Any] = yaml.safe_load(DOCUMENTS["RayService"]["spec"]["serveConfigV2"])
BOT: dict[str, Any] = DOCUMENTS["Deployment"]["spec"]["template"]
STAGES = dockerfile.read((REPOSITORY / "Dockerfile").read_text("utf-8"))
[WORKERS] = CLUSTER["workerGroupSpecs"]
GROUPS = [CLUSTER["headGroupSpec"], WORKERS]


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
CONTAINERS = [each for pod in PODS for each in (*pod.get("initContainers", ()), *pod["containers"])]


def test_ray_takes_the_configuration_of_the_service() -> None:
    """Ray Serve's own schema accepts it; its arguments make the service, with the image's model and a key."""
    from ray.serve.schema import ServeDeploySchema

    read = ServeDeploySchema.model_validate(SERVICE)
    [app] = read.applications
    assert (app.name, app.route_prefix, read.http_options.port) == (APP, "/", PORT)
    assert app.import_path == f"{application.__module__}:{application.__name__}"
    settings = ServiceSettings.model_validate(app.args)
    assert settings.model_dir == f"{runtime_environment()['ROOMTONE_MODELS__DIRECTORY']}/{WHISPER_BASE.name}"
    assert settings.asks_for_key
    assert application(settings)
    assert (WORKERS["minReplicas"], WORKERS["maxReplicas"]) == (settings.least, settings.most)
    [ray] = WORKERS["template"]["spec"]["containers"]
    assert float(ray["resources"]["requests"]["cpu"]) >= settings.cpus
    assert KEY_VARIABLE in {each["name"] for each in ray["env"]}


def test_the_image_is_the_dockerfiles_and_has_ray() -> None:
    """Every container runs the target `cluster`, which has the extra, with the locked Ray; no other target has it."""
    assert {container["image"] for container in CONTAINERS} == {"roomtone:cluster"}
    assert "COPY --from=build-cluster" in f"{STAGES['cluster'].steps[0].keyword} {STAGES['cluster'].steps[0].text}"
    [install] = [step.text for step in STAGES["build-cluster"].steps if step.keyword == "RUN"]
    assert "--all-extras" in install
    assert "--no-extra cluster" not in install
    assert STAGES["cluster"].last("USER") == "10001:10001"
    lock = (REPOSITORY / "uv.lock").read_text("utf-8")
    assert f'name = "ray"\nversion = "{CLUSTER["rayVersion"]}"' in lock


def test_models_are_where_the_image_looks() -> None:
    """Each Ray pod downloads the service's model before Ray starts, into a folder that the container has too."""
    for group in GROUPS:
        pod = group["template"]["spec"]
        assert [find_model(name) for name in pod["initContainers"][0]["command"][3:]] == [WHISPER_BASE]
        mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert runtime_environment()["ROOMTONE_STORAGE__DATA_DIR"] in mounts


def test_the_bot_asks_the_service_as_an_endpoint(tmp_path: Path) -> None:
    """With settings that it takes, at the service that KubeRay makes for the RayService."""
    [bot] = BOT["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in bot["env"]}
    asr = load(directory=tmp_path, environ=environment).asr
    assert asr.by_endpoint
    assert asr.base_url == f"http://{DOCUMENTS['RayService']['metadata']['name']}-serve-svc:{PORT}/v1"
    assert str(bot["ports"][0]["containerPort"]) == runtime_environment()["ROOMTONE_WEB__PORT"]


def test_only_the_bot_reaches_the_recognisers() -> None:
    """The network policy chooses the service's pods, and lets the bot's through to its port alone."""
    policy = POLICIES["roomtone-recognisers"]
    labels = policy["podSelector"]["matchLabels"]
    assert all(group["template"]["metadata"]["labels"] == labels for group in GROUPS)
    [to_port] = [rule for rule in policy["ingress"] if "ports" in rule]
    assert to_port["from"][0]["podSelector"]["matchLabels"] == BOT["metadata"]["labels"]
    assert [port["port"] for port in to_port["ports"]] == [PORT]
    assert POLICIES["roomtone-bot"]["podSelector"]["matchLabels"] == BOT["metadata"]["labels"]


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: str(container["name"]))
def test_every_container_is_in_bounds(container: dict[str, Any]) -> None:
    """Without capabilities and new privileges."""
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_pods_run_as_the_images_user_and_are_told_of_no_services() -> None:
    """Kubernetes gives each container variables for every Service of the namespace, which the settings may refuse."""
    users = {(pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) for pod in PODS}
    assert users == {(10001, 10001)}
    assert [pod.get("enableServiceLinks") for pod in PODS] == [False] * len(PODS)


def test_one_bot_at_a_time() -> None:
    """Two bots of one token would answer twice."""
    assert DOCUMENTS["Deployment"]["spec"]["replicas"] == 1
    assert DOCUMENTS["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
