"""Which tools of MCP servers the operator has approved: by a digest of name, description and schema of each.

`roomtone doctor --approve SERVER` shows the tools and writes the record. A tool that its server describes otherwise
afterwards is off until it is approved again, so no server can change what people have agreed to lend to a model.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import structlog

from bot.private_files import make_private_folder, replace_private_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

log = structlog.get_logger()

FILE_NAME = "mcp-approvals.json"


class Approvals:
    """The record, a file in the data folder. It is read anew each time, so that an approval needs no restart."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / FILE_NAME

    def of(self, server: str) -> frozenset[str]:
        """Return the digests of the tools of a server that are approved; none if the record cannot be read."""
        return frozenset(self._read().get(server, ()))

    def approve(self, server: str, digests: Iterable[str]) -> None:
        """Approve these tools of a server, and no others of it. Raises `OSError`."""
        kept = {**self._read(), server: sorted(digests)}
        make_private_folder(self._file.parent)
        replace_private_text(self._file, json.dumps(kept, indent=1), durable=True)

    def _read(self) -> Mapping[str, list[str]]:
        try:
            found = json.loads(self._file.read_text("utf-8"))
            return {str(name): [str(each) for each in digests] for name, digests in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("mcp_approvals_unread", error_class=type(error).__name__)
            return {}
