"""Summaries: makes a gist (a short text) and facts from each batch, and one summary of all batches.

Callers use `port` (`Summariser`), `llm` and `extractive` (its implementations), and `ledger` (`SegmentLedger`, which
has the summary). `fold_prompts`, `prompt_data` and `prompt_texts` write prompts; `required_facts` chooses the facts
that a summary must have. `answer` reads the model's answers, `checks` its facts and `paragraph_checks` its summary;
`paragraph_writer` asks once more for one that fails, and for the paragraph alone under the strategy that has nothing
else. `paragraph` makes a summary without a model, from the `statements` of the talk (`denials` tells which answers take
something back), and `segments` makes the stored records.
"""
