"""Long-term memory: search, facts about people, and the tiers of old segments. Pure; the search index is a port.

Search: `passage` (what can be found, and the port `RecallIndex`), `query` (terms and fusion), `recall` (ranking and
corrections), `passage_statements`, `quotes` (parts of a prompt). People: `people`. Old segments: `tiers`,
`segment_record`, `export_format`. `forgetting` removes forgotten words from a segment.
"""
