"""MCP servers from the settings, whose tools a language model may call. Only this package imports the `mcp` library.

The entry point `servers` runs all servers; `connection` connects and reconnects one server, `message_limit` bounds what
it sends; `tools` adapts their tools to ours.
"""
