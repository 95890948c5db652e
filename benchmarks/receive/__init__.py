"""`roomtone bench receive`: what it costs to receive many people who speak at once."""
