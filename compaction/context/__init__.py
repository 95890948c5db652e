"""Builds what is sent to a model from a session in one call, and can rebuild it later.

Callers use `build.build_payload`. `turn_text` formats turns. `record` reads a `model_context_built` log line, and
`provenance` rebuilds the payload from that line and the store.
"""
