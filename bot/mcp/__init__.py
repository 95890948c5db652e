"""MCP servers from the settings, whose tools a language model may call. Only this package imports the `mcp` library.

`servers`, the way in, runs them all; `connection` connects and reconnects one; `tools` adapts their tools to ours.
"""
