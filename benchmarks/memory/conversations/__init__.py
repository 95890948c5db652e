"""The conversations to remember: `synthetic_evenings` generates them, `transcripts` reads those of a user."""
