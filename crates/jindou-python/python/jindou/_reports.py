"""Reports on backups, restored stores and checks."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import List, Optional

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def moment(micros):
    return _EPOCH + dt.timedelta(microseconds=micros)


@dataclass(frozen=True)
class BackupInfo:
    """A backup in a folder: it can be restored to each snapshot from `first_snapshot` to `snapshot`, and to each time from `first_time`
    to `time`, when it was taken. `bytes` counts the files that it shares with other backups, too."""

    name: str
    time: dt.datetime
    snapshot: int
    first_snapshot: int
    first_time: dt.datetime
    bytes: int


@dataclass(frozen=True)
class BackupReport(BackupInfo):
    """A backup that was taken: also the files that were new in its folder and their bytes, the number of older backups that were removed, and
    how many of another process's newest transactions were not durable yet, which are left out."""

    new_files: int
    new_bytes: int
    left_out: int
    removed: int
    seconds: float


@dataclass(frozen=True)
class RestoreReport:
    """A store that was made of a backup: the backup's name, the store's snapshot and when that was committed (`None` if the log does not
    have it), its quads, the bytes that were read, and doubts about the choice of the backup."""

    backup: str
    snapshot: int
    committed: Optional[dt.datetime]
    quads: int
    bytes: int
    warnings: List[str]


@dataclass(frozen=True)
class CheckReport:
    """A store that was checked: its files and their bytes, a text for each damage, and the number of further damages. True if there are
    none."""

    files: int
    bytes: int
    damages: List[str]
    unlisted: int

    def __bool__(self) -> bool:
        return not self.damages
