"""Print the first migration, which makes the present schema: `make baseline` writes it to its file."""

from recollect.postgres.schema import statements

HEAD = """\
-- The whole schema, as it was when the first release was made. Made from the files of recollect/postgres/schema by
-- `make baseline`: read those, they say what the schema is now.

"""

if __name__ == "__main__":
    print(HEAD + statements(), end="")
