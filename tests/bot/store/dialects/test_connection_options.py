"""How connections to PostgreSQL are opened: what they wait for, and what the operator's URL says instead."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bot.store.dialects.postgresql import _NETWORK_TIMEOUT_S, _options

URL = "postgresql://bot:secret@db.example/memory"


def options_of(url: str) -> dict[str, str]:
    """Return the options of a connection as libpq reads them; it refuses those that it does not know."""
    return {name: str(value) for name, value in conninfo_to_dict(make_conninfo(**_options(url, 2.0))).items()}


def test_a_server_that_disappears_is_noticed_in_time_also_while_it_answers() -> None:
    """Its machine or its network is gone, so nothing says that the connection has ended. A query that was sent and
    acknowledged, and one that was not, both wait as long.
    """
    options = options_of(URL)
    idle, interval, count = (int(options[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count == _NETWORK_TIMEOUT_S
    assert int(options["tcp_user_timeout"]) == _NETWORK_TIMEOUT_S * 1000


@pytest.mark.parametrize("name", ["keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"])
def test_the_url_of_the_operator_decides(name: str) -> None:
    """What it does not say is ours."""
    ours, theirs = options_of(URL), options_of(f"{URL}?{name}=77")
    assert theirs == {**ours, name: "77"}
