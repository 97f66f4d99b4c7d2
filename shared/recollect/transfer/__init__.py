"""Import and export of whole graphs.

    model.py    strategies, the result of an import, the state that an export reads
    records.py  what a file contains: entities, facts, relations, positions in the hierarchy
    formats/    one module for each format: a writer of pieces and, for some, a reader
    exports.py  an export in steps of one transaction each
    batches.py  a file of any size as batches of one revision each
    dry_run.py  a batch that is tried and rolled back, with what it needs of earlier ones
    file_jobs.py  exports and imports as jobs
    service.py  an import of a batch; entities.py (with merged_records.py), placements.py, facts.py and edges.py are its
                parts

A format turns text into records and back; nothing else knows formats.
"""
