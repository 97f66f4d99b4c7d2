"""How well recall finds: questions with known evidence, asked of the real service, beside baselines on the same texts.

A conversation is remembered turn by turn through MCP (`thread`, `at`, and `about` or the speaker before the text), each
in a graph of its own. When the worker has caught up, every question is asked, and what comes back is compared with the
turns that hold the answer. No model judges anything.

    make quality                                        conversations that are made up (`invented.py`)
    make quality ARGS="--conversations FILE"            those of a file in the shape of LoCoMo's
"""
