"""Speech recognition: local Whisper behind a fair queue, remote endpoints, and guards. Start at `port`."""
