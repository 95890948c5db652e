"""Language models behind one port (`port`). `factory.open_model` is the entry point.

`fallback` tries several models in turn, `budgeted` keeps each within its token `budget`, `openai_chat` talks to an
endpoint, with `tool_calls` and `endpoint_errors`. `tokenizers` and `tokenizer_files` count tokens. `openai_embeddings`,
`openai_moderation` and `openai_vision` serve other ports with the same library.
"""
