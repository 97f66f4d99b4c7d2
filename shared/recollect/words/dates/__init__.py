"""Times that texts name, in every language that has a table, as ranges of days.

`phrases` finds phrases such as "last Tuesday" in a text and turns them into days. `phrase_tables` has the phrases of
each language (`date_words.toml` those of all but English), `arithmetic` what they mean, `ranges` the ranges of days,
and `day_numbers` the numbers by which passages are found by the days that they name.
"""
