"""Rules about English text, without a model. In other languages most rules find nothing.

`wording` (sentences, names, numbers, concepts, cues), `lexicon` (word lists and cues), `stems` (the stemmer), `terms`
(search terms), `values` (times, dates, figures, names), `claims` and `correction` (whether a statement replaces
another), `elliptic` (corrections without a subject), `statements` (facts that people state about themselves),
`quotations` (whether a text quotes another). `sentence_cache` caches results until words are forgotten.
"""
