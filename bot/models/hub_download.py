"""Downloads files from the model hub, in a process of its own: `python -m bot.models.hub_download REPOSITORY REVISION
FOLDER FILE…`.

The hub's client bounds the wait for each part of an answer and not the whole download; a process can be ended. It
prints nothing but, when it fails, what the hub did.
"""

from __future__ import annotations

import sys


def main(repository: str, revision: str, folder: str, *files: str) -> int:
    """Download the files and return the exit status."""
    import huggingface_hub

    try:
        # One short request first: the download itself would retry an unreachable hub for half a minute.
        huggingface_hub.HfApi().model_info(
            repository, revision=revision, timeout=huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT
        )
        huggingface_hub.snapshot_download(
            repository, revision=revision, allow_patterns=list(files), local_dir=folder, max_workers=2
        )
    except Exception as error:  # noqa: BLE001 -- the client passes on errors of several HTTP libraries
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        sys.stdout.write(f"did not give {repository}: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
