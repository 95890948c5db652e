"""A fake Python interpreter that seems to have llama.cpp's server installed.

The interpreter is a shell script. It starts a small HTTP server with one model that never says anything.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# A minimal replacement for `python -m llama_cpp.server --host H --port P …`. The id of its only model is the list of
# arguments with which the server was started.
_SERVER = """
import http.server, json, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = json.dumps({"data": [{"id": sys.argv[1:]}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""


def python_that(folder: Path, does: str) -> str:
    """Write a shell script that stands for a Python interpreter and runs the command `does`. Return the
    script's path.
    """
    shim = folder / "python"
    shim.write_text(f"#!/bin/sh\n{does}\n")
    shim.chmod(0o755)
    return str(shim)


def llama_python(folder: Path) -> str:
    """Return the path of an interpreter that seems to have llama.cpp's server."""
    server = folder / "server.py"
    server.write_text(_SERVER)
    return python_that(folder, f'[ "$1" = -c ] && exit 0\nexec {sys.executable} {server} "$@"')
