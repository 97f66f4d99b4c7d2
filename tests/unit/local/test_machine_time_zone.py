from pathlib import Path

import pytest

from recollect_local.machine_time_zone import machine_time_zone


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":America/New_York", "America/New_York"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("/var/db/timezone/zoneinfo/Pacific/Auckland", "Pacific/Auckland"),
        ("UTC", None),
        ("Etc/UTC", None),
        ("CET-1CEST,M3.5.0,M10.5.0/3", None),
        ("Mars/Olympus", None),
    ],
)
def test_the_variable_counts_before_the_files(tmp_path: Path, text: str, zone: str | None) -> None:
    (tmp_path / "timezone").write_text("Asia/Seoul\n")
    assert machine_time_zone({"TZ": text}, localtime=tmp_path / "none", timezone=tmp_path / "timezone") == zone


def test_the_link_of_the_system_names_the_zone(tmp_path: Path) -> None:
    zone = tmp_path / "usr/share/zoneinfo/America/Argentina/Ushuaia"
    zone.parent.mkdir(parents=True)
    zone.touch()
    link = tmp_path / "localtime"
    link.symlink_to(zone)
    timezone = tmp_path / "timezone"
    assert machine_time_zone({}, localtime=link, timezone=timezone) == "America/Argentina/Ushuaia"
    link.unlink()
    link.touch()  # A copy of the file, which names no zone.
    assert machine_time_zone({}, localtime=link, timezone=timezone) is None
    timezone.write_text("Asia/Seoul\n")
    assert machine_time_zone({}, localtime=link, timezone=timezone) == "Asia/Seoul"
