"""PrecisionMemBench: how much of what comes back was wanted? Its fixtures are the user's; none is kept here."""
