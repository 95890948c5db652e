"""The page that shares a screen, in a real browser: the system's own Chromium."""
