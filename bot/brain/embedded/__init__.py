"""The responder without a language model. The entry point is `chat.EmbeddedResponder`.

`evidence_sources` collects the sentences of a payload, `evidence` finds the one that answers a question.
"""
