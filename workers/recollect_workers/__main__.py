"""`python -m recollect_workers`."""

from recollect_workers.main import main

main()
