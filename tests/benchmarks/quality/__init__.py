"""How well recall finds: questions with known evidence to the real service, compared with baselines on the same texts.

Each conversation is remembered turn by turn through MCP (`thread`, `at`, and `about` or the speaker before the text),
in its own graph. When the worker has caught up, all questions are asked, and the results are compared with the turns
that contain the answers. No model judges anything.

Beside conversations there are groups of questions of other kinds (`groups`).

    make quality                                        synthetic conversations (`invented.py`), and all groups
    make quality ARGS="--group facts"                   one of them
    make quality ARGS="--conversations FILE"            those of a file in the format of LoCoMo
"""
