"""Long-term memory: search, facts about people, and the storage tiers of old segments.

The code does no I/O; the search index is a port. Search: `passage` (what can be found, and the port `RecallIndex`),
`recall` (search terms, and the hits in their order), and `quotes` (search hits as parts of a prompt). People: `people`.
Old segments: `tiers` and `segment_record`. `digest` tells people what a session was about. `forgetting` decides what
goes with a person.
"""
