"""What an operator can tune in `bot`; each field says its unit, its default's reason and when it takes effect."""

from __future__ import annotations
