"""How fast, how steadily and when the bot replies."""
