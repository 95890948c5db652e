"""How connections to PostgreSQL are opened: what they wait for, and what the operator's URL says instead."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bot.store.dialects.postgresql import NETWORK_TIMEOUT_S, connection_options, hosts_of, place_of
from compaction.errors import StoreError

URL = "postgresql://bot:secret@db.example/memory"


def options_of(url: str) -> dict[str, str]:
    """Return the options of a connection as libpq reads them; it refuses those that it does not know."""
    return {name: str(value) for name, value in conninfo_to_dict(make_conninfo(**connection_options(url, 2.0))).items()}


def test_a_server_that_disappears_is_noticed_in_time_also_while_it_answers() -> None:
    """Its machine or its network is gone, so nothing says that the connection has ended. A query that was sent and
    acknowledged, and one that was not, both wait as long.
    """
    options = options_of(URL)
    idle, interval, count = (int(options[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count == NETWORK_TIMEOUT_S
    assert int(options["tcp_user_timeout"]) == NETWORK_TIMEOUT_S * 1000


@pytest.mark.parametrize("name", ["keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"])
def test_the_url_of_the_operator_decides(name: str) -> None:
    """What it does not say is ours."""
    ours, theirs = options_of(URL), options_of(f"{URL}?{name}=77")
    # Each connection has a name that no other one has.
    assert theirs.pop("application_name") != ours.pop("application_name")
    assert theirs == {**ours, name: "77"}


@pytest.mark.parametrize(
    "password",
    ["sec@ret", "sec/ret", "sec/r@et", "sec@r/ret", "sec@r:ret", "sec@r:t/ret", "s@ret,@c", "sec%ret", "sec ret"],
)
def test_no_sentence_has_a_part_of_a_password_that_was_not_encoded(password: str) -> None:
    """libpq would take what follows the sign for the host, or all of it for the database."""
    url = f"postgresql://bot:{password}@db.example:5432/memory"
    for read in (place_of, hosts_of, options_of):
        with pytest.raises(StoreError, match="%40") as refused:
            read(url)
        assert "ret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://bot:sec%40r%2Fet@db.example:5432/memory", "postgresql://db.example:5432/memory"),
        ("postgresql://bot:s#e?c:ret@db.example/memory", "postgresql://db.example/memory"),
        ("postgresql://bot@a.example:1,b.example:2/memory", "postgresql://a.example,b.example:1,2/memory"),
        ("postgresql://bot@%40socket/memory%40home", "postgresql://@socket/memory@home"),
        ("postgresql:///memory", "postgresql://localhost/memory"),
    ],
)
def test_a_database_is_called_by_its_url_without_user_and_password(url: str, place: str) -> None:
    """Signs that belong there stay."""
    assert place_of(url) == place
