"""MCP servers from the settings, whose tools a language model may call. The one home of the `mcp` library.

`connection` holds one server's connection and mends it, `servers` all of them, `tools` makes our tools of theirs.
"""
