"""Speech recognition: local Whisper behind a fair queue, remote endpoints, and guards. The way in is `port`."""
