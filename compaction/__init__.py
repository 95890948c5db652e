"""The memory of a session: turns go in, context for a model comes out. Imports nothing else of ours.

Way in: `session.SessionMemory`. Rooms: `folding` (when a batch is folded, and its landing), `summary` (what makes a
batch into a segment, and the ledger that renders the summary), `context` (the payload of one model call), `budget`
(token limits of any call), `memory` (search, facts about people, tiers of old segments), `language` (rules about
English). Values: `model`, `payload`; ports: `ports`; picture and reasons: README.md.
"""
