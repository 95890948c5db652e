"""Voice close codes: no code is both fatal and resumable."""

from __future__ import annotations

from voice.transport.close_codes import RESUMABLE, fatal_reason


def test_fatal_codes_name_themselves_and_cannot_be_resumed() -> None:
    fatal = [code for code in range(1000, 5000) if fatal_reason(code) is not None]
    assert {4004, 4017} <= set(fatal)
    assert all(str(code) in str(fatal_reason(code)) for code in fatal)
    assert not RESUMABLE & set(fatal)


def test_what_a_new_session_mends_is_not_fatal() -> None:
    """Codes that a new session repairs are not fatal: 4006 and 4009 (session gone), 4014 (moved or removed), and no
    code.
    """
    assert [fatal_reason(code) for code in (4006, 4009, 4014, None)] == [None] * 4
