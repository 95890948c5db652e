"""Discord's voice connection in both directions. The way in is `link.VoiceLink`."""
