"""Summaries: makes a gist (a short text) and facts from each batch, and renders one summary from all batches.

Callers use `port` (`Summariser`), `llm` and `extractive` (its implementations), and `ledger` (`SegmentLedger`, which
renders the summary). `recursive` is the other strategy: it rewrites one paragraph each time. `fold_prompts` and
`prompt_texts` write prompts. `answer` and `grounding` check the model's answers. `selection` chooses
sentences for the summary, and `segments` makes the stored records.
"""
