"""Pages of the documentation that are made from the code, so that they cannot drift from it.

`commands` prints them; `settings` and `tools` make a page each; `glossary` says what the code does not, `wording` puts
schemas into words.
"""
