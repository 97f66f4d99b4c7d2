"""Import and export of whole graphs.

    model.py    what a transfer carries, what became of it, and the state that an export reads
    jsonl.py    the official memory server's file: lines to items and back
    packets.py  a file of any size as bounded requests
    service.py  import a chunk, check one, export a graph

A format turns bytes into items (`NewEntity`, `NewRelation`) and back; nothing else knows formats.
"""
