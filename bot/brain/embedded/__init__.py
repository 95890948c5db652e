"""The responder without a language model. The entry point is `chat.EmbeddedResponder`.

`evidence` collects the sentences of a payload, and finds the one that answers a question; `chat` answers, and finds
what somebody means who does not know the bot yet.
"""
