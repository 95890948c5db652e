"""The page that shares a screen, tested in a real browser: the Chromium installed on the system."""
