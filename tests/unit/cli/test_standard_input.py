"""Reading standard input from a pipe."""

import _thread
import os
import signal
import threading
from io import BufferedReader

import pytest

from recollect_cli.standard_input import InterruptibleFile


@pytest.fixture
def pipe() -> tuple[BufferedReader, int]:
    reading, writing = os.pipe()
    return BufferedReader(InterruptibleFile(reading)), writing


def test_a_pipe_is_read_to_its_end(pipe: tuple[BufferedReader, int]) -> None:
    file, writing = pipe
    with file:
        os.write(writing, b"one\ntwo")
        assert file.readline() == b"one\n"
        os.close(writing)
        assert file.read() == b"two"
        assert file.read(1) == b""


def test_a_signal_ends_a_read_that_it_does_not_interrupt(
    pipe: tuple[BufferedReader, int], request: pytest.FixtureRequest
) -> None:
    """`interrupt_main` does not interrupt a system call, and neither does a signal just before the call."""
    # A shell starts what runs in its background with this signal ignored.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, former))
    file, writing = pipe
    with file:
        interrupting = threading.Timer(0.1, _thread.interrupt_main)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            file.read(1)
        interrupting.join()
        os.write(writing, b"x")
        assert file.read(1) == b"x"
    os.close(writing)
