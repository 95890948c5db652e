"""What the tests of the checks ask of a finding."""

from __future__ import annotations

from bot.cli.doctor.finding import Finding, Status


def is_missing(finding: Finding, *, detail: str, remedy: str) -> bool:
    """Return whether a finding has the status "missing" and contains these words."""
    return finding.status is Status.MISSING and detail in finding.detail and remedy in finding.remedy
