"""Long-term memory: search, facts about people, and the storage tiers of old segments.

The code does no I/O; the search index is a port. Search: `passage` (what can be found, and the port `RecallIndex`),
`query` (search terms and the combination of rankings), `recall` (the hits in their order), and `quotes` (search hits
as parts of a prompt). People: `people`. Old segments: `tiers`, `segment_record` and `export_format`. `digest` tells
people what a session was about. `forgetting` decides what goes with a person.
"""
