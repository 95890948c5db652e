"""Loads the small models that judge what is heard. They run on one thread of the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import onnxruntime

    from voice.errors import VoiceError


def open_model(
    file: Path,
    inputs: set[str],
    *,
    what: str,
    remedy: str,
    failure: type[VoiceError],
    keep_memory: bool = True,
) -> onnxruntime.InferenceSession:
    """Load a model that takes these inputs. Raises `failure` if the file is none, with `what` it is and the `remedy`.

    `keep_memory`: keep what a call takes for the next one.
    """
    # Whoever hears without such a model needs no runtime for it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # The work is many small steps: a second thread would only spin.
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = keep_memory
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(file), sess_options=options, providers=["CPUExecutionProvider"])
        found = {node.name for node in session.get_inputs()}
    except Exception as exc:
        raise failure(f"The {what} {file} could not be read; {remedy}.") from exc
    if found != inputs:
        raise failure(f"The {what} {file} takes {sorted(found)} and not {sorted(inputs)}; {remedy}.")
    return session
