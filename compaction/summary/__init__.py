"""Summaries: makes a gist (a short text) and facts from each batch, and one summary of all batches.

Callers use `port` (`Summariser`), `llm` and `extractive` (its implementations), and `ledger` (`SegmentLedger`, which
has the summary, with its `chapters`). `fold_prompts`, `prompt_data` and `prompt_texts` write prompts; `required_facts`
chooses the facts that a summary must have, `day` tells its dates. `answer` reads the model's answers, `checks` its
facts (`copied_facts` are none) and `paragraph_checks` its summary; `sources` tells which names, numbers (`said_values`)
and `dates` somebody said, and `weekdays` which of these are the calendar's. `paragraph_writer` leaves out `asides` of a
summary that is too long, and asks once more for one that fails, and for the paragraph alone under the strategy that has
nothing else. `paragraph` makes a summary without a model, from the `statements` of the talk (`denials` tells which
answers take something back, `density` which say most, `subjects` what the rest was about). `segments` makes the stored
records, and `trace` finds where a sentence of the summary comes from.
"""
