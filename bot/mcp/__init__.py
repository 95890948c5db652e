"""MCP servers from the settings, whose tools a language model may call. Only this package imports the `mcp` library.

The entry point `servers` runs all servers; `connection` connects and reconnects one server; `tools` adapts their tools
to ours.
"""
