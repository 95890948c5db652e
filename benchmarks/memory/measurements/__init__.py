"""The parts of a run: `extractive`, `prompt_quotes`, `reply_path` and `search_speed`, over a `room`."""
