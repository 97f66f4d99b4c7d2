"""OAuth: which clients there are, what people let them do, the tokens that follow, and the keys that sign."""
