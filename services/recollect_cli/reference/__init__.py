"""Pages of the documentation that are made from the code, so that they cannot drift from it.

`commands` prints them; `settings` and `tools` make a page each; `glossary` has explanations that the code lacks, and
`wording` puts schemas into words.
"""
