"""`roomtone bench unasked`: how often the bot speaks in real talk among people of whom nobody means it."""
