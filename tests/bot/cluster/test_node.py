"""How a machine becomes a part of a cluster: the token, and the command line of Ray."""

from __future__ import annotations

import resource
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from bot import private_files
from bot.cluster import node
from bot.cluster.address import LOOPBACK_STAYS, ClusterError, pool_endpoint, quiet, read_token, token_environment
from bot.cluster.node import NodeSettings, make_token, ray_environment, running_node, start_command
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


def test_the_token_is_made_once_and_for_one_user(tmp_path: Path) -> None:
    """The first machine makes a token that only its user can read, and keeps it."""
    make_token(tmp_path / "cluster")
    token = read_token(tmp_path / "cluster")
    make_token(tmp_path / "cluster")
    assert read_token(tmp_path / "cluster") == token
    assert len(token) == 64
    assert stat.S_IMODE((tmp_path / "cluster" / "token").stat().st_mode) == 0o600


def test_a_full_disk_leaves_no_half_token(tmp_path: Path) -> None:
    """Else the next start would take what is there for the token, and say that it has to be copied from elsewhere."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so writing on is an error, as on a disk that has room for 32 bytes.
    resource.setrlimit(resource.RLIMIT_FSIZE, (32, limit[1]))
    try:
        with pytest.raises(ClusterError, match="token cannot be written: File too large"):
            make_token(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    make_token(tmp_path)
    assert len(read_token(tmp_path)) == 64


def test_a_token_has_its_name_once_it_outlives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else 64 zero bytes may be left of it, which every start would take for the token, and anybody could guess."""
    synced: list[tuple[str, bool]] = []

    def sync(path: Path) -> None:
        synced.append((path.name, (tmp_path / "token").exists()))

    monkeypatch.setattr(private_files, "sync_to_disk", sync)
    make_token(tmp_path)
    assert synced[0] == ("token.new", False)


@pytest.mark.parametrize("content", [None, "", "\n", "\u00e9"])
def test_without_a_token_the_sentence_says_where_it_comes_from(tmp_path: Path, content: str | None) -> None:
    """A missing, empty or unreadable token is told with its file and its source."""
    if content is not None:
        (tmp_path / "token").write_text(content, encoding="utf-8")
    with pytest.raises(ClusterError, match=r"token.*[Cc]opy"):
        read_token(tmp_path)


@pytest.mark.asyncio
async def test_a_machine_that_joins_needs_the_token_first(tmp_path: Path) -> None:
    """Joining makes no token of its own: the cluster would refuse it after a minute, with words nobody understands."""
    with pytest.raises(ClusterError, match="first machine"):
        async with running_node(NodeSettings(tmp_path, join="10.0.0.1:6379")):
            pass
    assert not (tmp_path / "token").exists()


@pytest.mark.asyncio
async def test_a_machine_looks_for_the_first_one_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would try for two minutes, and then say nothing that an operator understands."""
    monkeypatch.setattr(node, "HEAD_WITHIN_S", 0.1)
    make_token(tmp_path)
    with pytest.raises(ClusterError, match=r"Nobody answers at 127\.0\.0\.1:1\."):
        async with running_node(NodeSettings(tmp_path, join="127.0.0.1:1")):
            pass
    assert not (tmp_path / node.OUTPUT_FILE).exists()


@pytest.mark.asyncio
async def test_without_ray_the_sentence_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make setup` leaves Ray out, so this is what an operator meets first. Nothing is made, and Ray is not tried."""
    monkeypatch.setattr(node, "find_spec", lambda _: None)
    with pytest.raises(ClusterError, match="make cluster"):
        async with running_node(NodeSettings(tmp_path / "cluster")):
            pass
    assert not (tmp_path / "cluster").exists()


def test_an_utterance_takes_no_proxy_on_its_way_to_a_recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Serve hands it over with gRPC, which would take the proxy of the environment, even on one machine."""
    import grpc

    class Recogniser(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, _: object) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda utterance, _: utterance)

    for name in ("https_proxy", "http_proxy"):
        # Nobody listens there.
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name, value in node.RAY_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads, [Recogniser()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                assert channel.unary_unary("/recogniser/hear")(b"sound", timeout=PATIENCE_S) == b"sound"
        finally:
            server.stop(None).wait()


def test_the_first_machine_is_the_head(tmp_path: Path) -> None:
    """It is reached at its own address, loopback unless the operator gives another."""
    settings = NodeSettings(tmp_path)
    words = start_command(settings)
    assert settings.address == "127.0.0.1:6379"
    assert "--head" in words
    assert words[words.index("--node-ip-address") + 1] == "127.0.0.1"
    assert "--address" not in words


@pytest.mark.parametrize("ip", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_machine_that_is_alone_is_reached_by_nobody_else(tmp_path: Path, ip: str) -> None:
    """Ray would take the machine's address in the network, a public one for example, and listen on all of them."""
    assert LOOPBACK_STAYS.items() <= ray_environment(NodeSettings(tmp_path, ip=ip)).items()
    for others in (NodeSettings(tmp_path, ip="10.0.0.1"), NodeSettings(tmp_path, join="10.0.0.1:6379")):
        assert not LOOPBACK_STAYS.keys() & ray_environment(others).keys()


def test_ray_knows_what_keeps_it_on_this_machine() -> None:
    """With another release it may be called something else."""
    from ray._private import ray_constants

    [name] = LOOPBACK_STAYS
    assert name == ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR


def test_another_machine_joins_it(tmp_path: Path) -> None:
    """It is no head, and gives the head's address."""
    settings = NodeSettings(tmp_path, ip="10.0.0.2", join="10.0.0.1:6379", cpus=4)
    words = start_command(settings)
    assert "--head" not in words
    assert words[words.index("--address") + 1] == settings.address == "10.0.0.1:6379"
    assert words[words.index("--num-cpus") + 1] == "4"


def test_only_the_head_is_told_what_ray_takes_from_a_head_alone(tmp_path: Path) -> None:
    """Ray refuses to start a machine that joins if it is told about the dashboard or the head's port."""
    for_the_head = {"--head", "--port", "--include-dashboard"}
    assert for_the_head <= set(start_command(NodeSettings(tmp_path)))
    assert not for_the_head & set(start_command(NodeSettings(tmp_path, join="10.0.0.1:6379")))


def test_ray_reports_to_nobody(tmp_path: Path) -> None:
    """Ray's report to its makers is off, and its own processes ask for the token."""
    environment = {"RAY_USAGE_STATS_ENABLED": "1"}
    quiet(environment)
    assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
    assert "--disable-usage-stats" in start_command(NodeSettings(tmp_path))
    assert token_environment(tmp_path)["RAY_AUTH_MODE"] == "token"


def test_a_bot_asks_the_node_that_it_runs_on(tmp_path: Path) -> None:
    """`auto` is this machine's own address, and any other is taken as it is; the token comes along."""
    (tmp_path / "token").write_text("secret\n", encoding="ascii")
    here, there = pool_endpoint("auto", tmp_path), pool_endpoint("10.0.0.1:8571", tmp_path)
    assert (here.base_url, here.api_key) == ("http://127.0.0.1:8571/v1", "secret")
    assert there.base_url == "http://10.0.0.1:8571/v1"
    assert pool_endpoint("fd00::1:8571", tmp_path).base_url == "http://[fd00::1]:8571/v1"


@pytest.mark.parametrize("text", ["", "here", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "http://10.0.0.1:8571"])
def test_what_is_no_pools_address_is_told(tmp_path: Path, text: str) -> None:
    """It says what --cluster takes."""
    with pytest.raises(ClusterError, match=f"'{text}' is not the address of a cluster. Give --cluster auto, or HOST"):
        pool_endpoint(text, tmp_path)
