"""Recall: finds memories by their words, by the words around them and by their meaning.

- **The call**: `service` (the use case), `model`, `cache`, `listing` and `pages` (what is listed, not searched for).
- **The question**: `questions` (with vectors), `prompts` (the part that asks), `overviews` (that ask for everything),
  `question_analysis` (what kind of answer), `user_mentions`, `terms` (by which it is searched), `spelling_correction`
  with `english_words`.
- **Candidates**: `store` (by words and vectors), `dated_candidates` (by days).
- **The order**: `ranking` computes the scores and `ranking_weights` has their weights; `matching` compares token by
  token, `floors` leaves out what is far from the best, `updates` puts the newer of two facts first.
"""
