"""What one model call is sent of a session, and how to rebuild it later.

Way in: `build.build_payload`. `turn_text` formats turns; `record` reads a `model_context_built` log line, and
`provenance` rebuilds the payload from it.
"""
