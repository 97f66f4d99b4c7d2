"""What a word is, for passages and for questions: one analysis, in every script.

`analysis` turns a text into lexemes with their positions, as PostgreSQL's `tsvector` has them, and a question into the
words that it asks for. `characters` finds where words begin and end, `compounds` what parts an identifier has,
`stemming` which forms of a word are one, and `languages` in which language a text is written. `english_detection` says
whether a text is English; `dates` finds the times that a text names, and turns them into days.

It runs in Python: PostgreSQL's parser depends on the locale of the database, takes a run of Chinese for one word and
knows no bigrams, and its functions would take several times as long (docs/adr/0023-words-in-every-language.md).
"""
