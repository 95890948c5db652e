"""Language models behind one port (`port`). `factory.open_model` is the entry point.

`fallback` tries several models in turn, `budgeted` keeps each within its token `budget`, `openai_chat` talks to an
endpoint, and `openai_completion` gets its whole answers. `model_calls` logs and counts what each call cost. `chat_wire`
is the JSON of its API, `streamed_answer` what has come of an answer, with the calls that `tool_calls` reads in it,
`endpoint_features` learns what an endpoint takes, `endpoint_errors` says what went wrong.
`answer_text` and `thoughts` leave out of an answer what is not said; `message_order` suits strict chat templates.
`tokenizers` and `tokenizer_files` count tokens.
`openai_embeddings`, `openai_moderation` and `openai_vision` serve other ports with the same library.
"""
