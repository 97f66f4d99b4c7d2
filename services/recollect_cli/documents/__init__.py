"""Documents as memories: Markdown, plain text, PDF and Office files, alone or in a folder.

`reading` finds the files and chooses who reads each; `markdown`, `pdf` and `office` read one into passages, each with
its heading and its position; `records` writes what was read as a file that the gateway imports.
"""
