"""Language models behind one port (`port`). `factory.open_model` is the entry point.

`fallback` tries several models in turn, `budgeted` keeps each within its token budget, `openai_chat` talks to an
endpoint by the `chat_client`. `model_calls` names who pays for each call, and logs and counts what it cost. `chat_wire`
is the JSON of its API, `streamed_answer` what has come of an answer: its words without thoughts, and its calls.
`endpoint_features` knows what an endpoint takes, `endpoint_errors` says what went wrong. `tokenizers` count tokens.
`openai_embeddings`, `openai_moderation` and `openai_vision` serve other ports with the same library.
"""
