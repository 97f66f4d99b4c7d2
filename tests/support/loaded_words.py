"""The words of English, loaded on import: a gateway that is forked from such a process need not load them."""

from recollect.retrieval.recall.english_words import english

english()
