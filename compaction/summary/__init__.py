"""Summaries: makes a gist (a short text) and facts from each batch, and renders one summary from all batches.

Callers use `port` (`Summariser`), `llm` and `extractive` (its implementations), and `ledger` (`SegmentLedger`, which
renders the summary). `recursive` is the other strategy: it rewrites one paragraph each time. `fold_prompts`,
`prompt_data` and `prompt_texts` write prompts; `required_facts` chooses the facts that a summary must have. `answer`
reads the model's answers, `checks` checks its facts and `paragraph_checks` its summary. `paragraph` makes a summary
without a model, and `segments` makes the stored records.
"""
