"""Builds what is sent to a model from a session in one call: `build.build_payload`. `turn_text` formats turns."""
