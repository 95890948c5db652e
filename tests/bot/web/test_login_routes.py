"""How often logins are taken to Discord."""

from __future__ import annotations

from bot.web.login_routes import MAX_TRIES, MAX_TRIES_OF_ONE_CLIENT, PER_S, LoginTries

# The machine has been up for a day.
NOW = 86_400.0


def test_one_address_does_not_keep_the_others_out() -> None:
    """Behind a trusted proxy each household has its own number of tries in a minute."""
    tries = LoginTries()
    allowed = [tries.allows("north", NOW) for _ in range(MAX_TRIES_OF_ONE_CLIENT + 1)]
    assert allowed.count(True) == MAX_TRIES_OF_ONE_CLIENT
    assert tries.allows("south", NOW)
    assert not tries.allows("north", NOW + PER_S - 1)
    assert tries.allows("north", NOW + PER_S)


def test_all_together_do_not_get_the_machine_barred() -> None:
    """Also where it is not known who asks. What was refused does not count."""
    tries = LoginTries()
    assert [tries.allows(None, NOW) for _ in range(MAX_TRIES + 50)].count(True) == MAX_TRIES
    assert not tries.allows("north", NOW + PER_S - 1)
    assert tries.allows("north", NOW + PER_S)
    # Invalid requests in ten minutes, at most.
    assert 10 * MAX_TRIES < 10_000
