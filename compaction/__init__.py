"""The memory of a session: conversation turns go in, and context for a language model comes out.

This package imports no other package of this project. Callers use `session.SessionTimeline`. `compactor`
summarises batches of turns and stores the results. Subpackages: `summary` (turns a batch into a segment with the
summary), `context` (the payload of one model call), `budget` (token limits of all model calls),
`memory` (search, facts about people, storage tiers of old segments), `language` (words and sentences). `model` and
`payload` define the values, and `ports` the interfaces to a store and to models. README.md has a diagram and the
reasons for the design.
"""
