"""Nothing that a command prints is cut: ids can be copied on any terminal, and pipes get whole numbers."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest

from recollect_cli.tables import short_number, show, show_record

KEY = "01a21c9f-f000-7000-8000-0123456789ab"
COLUMNS = ("id", "name", "limit")
ROWS = [(KEY, "laptop of Ada, which is in the second drawer", 10_000), (KEY[::-1], "b\x1b[2J", 12_345)]


class Terminal(io.StringIO):
    """Standard output of a person."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, do: Callable[[], None]) -> str:
    """What a person at a terminal of so many columns sees."""
    terminal = Terminal()
    for name, value in (("TERM", "xterm"), ("NO_COLOR", "1"), ("LINES", "50"), ("COLUMNS", str(columns))):
        monkeypatch.setenv(name, value)
    with redirect_stdout(terminal):
        do()
    return terminal.getvalue()


def test_a_wide_terminal_shows_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 150, lambda: show(COLUMNS, ROWS)).splitlines()
    assert [line for line in lines if KEY in line and "second drawer" in line and " 10k " in line]
    assert len(lines) == 6


def test_a_narrow_terminal_shows_records_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for columns in (20, 80, 92):
        with subtests.test(columns=columns):
            assert on_terminal(monkeypatch, columns, lambda: show(COLUMNS, ROWS)) == (
                f"id     {KEY}\nname   laptop of Ada, which is in the second drawer\nlimit  10k\n\n"
                f"id     {KEY[::-1]}\nname   b\\x1b[2J\nlimit  12,345\n"
            )


def test_a_record_is_a_line_for_each_field(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_terminal(monkeypatch, 20, lambda: show_record({"id": KEY, "error": f"x:{' long' * 20}"}))
    assert shown == f"id     {KEY}\nerror  x:{' long' * 20}\n"


def test_a_pipe_gets_whole_numbers_between_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, ROWS, empty="There is nothing.")
    output = capsys.readouterr()
    assert output.out == f"{KEY}\t{ROWS[0][1]}\t10000\n{KEY[::-1]}\tb\\x1b[2J\t12345\n"
    assert output.err == ""


def test_an_empty_list_is_said_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, [], empty="There is nothing.")
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "There is nothing.\n")


def test_short_numbers_say_exactly_the_same(subtests: pytest.Subtests) -> None:
    told = {0: "0", 999: "999", 1_000: "1k", 1_500: "1.5k", 10_000: "10k", 10_000_000: "10M", 100 * 10**9: "100G"}
    told |= {1_234: "1,234", 12_345: "12,345", 2**30: "1,073,741,824", 1_200_000: "1.2M", 3 * 10**12: "3T"}
    for number, text in told.items():
        with subtests.test(text):
            assert short_number(number) == text
