"""Discord's voice connection in both directions. Start at `link.VoiceLink`."""
