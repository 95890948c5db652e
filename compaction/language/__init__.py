"""Rules about languages, without a model. With patterns elsewhere they have at most 1,000 lines, for all languages.

`meaning` reads what a sentence says, `text` splits sentences, `clauses` cuts statements, `terms` makes search terms.
`language` defines what is known of one language; `languages` has all of them. A further one is a file like `german`.
"""
