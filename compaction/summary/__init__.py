"""Summaries: what makes a gist and facts of a batch, and the summary that is rendered from all batches.

Ways in: `port` (`Summariser`), `llm` and `extractive` (its implementations), `ledger` (`SegmentLedger`, the rendering).
`recursive` is the other strategy: one paragraph, rewritten each time. `fold_prompts` and `prompt_texts` write prompts;
`answer`, `grounding` and `assistant_facts` check what comes back. `selection` chooses sentences, `segments` makes
records.
"""
