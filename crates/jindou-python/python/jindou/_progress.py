"""Progress of loads."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Progress:
    """A load as it is now: the bytes of `total_bytes` that were read (before decompression), the quads in them, and how far the
    phase is (from 0 to 1)."""

    phase: str
    bytes: int
    total_bytes: Optional[int]
    quads: int
    skipped: int
    phase_fraction: float
    done: bool = False

    @property
    def fraction(self) -> Optional[float]:
        """The part of the phase that is done; `None` where that is not known."""
        if self.phase != "reading":
            return self.phase_fraction
        return min(1.0, self.bytes / self.total_bytes) if self.total_bytes else None


class _Line:
    """A line on standard error, written over and over."""

    def __init__(self):
        self.begun = time.monotonic()
        self.length = 0

    def __call__(self, progress):
        part = "" if progress.fraction is None else f" {progress.fraction:4.0%}"
        seconds = time.monotonic() - self.begun
        text = f"{progress.phase}{part}, {progress.quads:,} quads, {seconds:.1f} s"
        if progress.done:
            text = f"loaded {progress.quads:,} quads in {seconds:.1f} s"
        sys.stderr.write("\r" + text.ljust(self.length) + ("\n" if progress.done else ""))
        sys.stderr.flush()
        self.length = len(text)


def callback(progress):
    """The function that a value of `progress=` stands for; `None` for none."""
    if progress is True:
        return _Line()
    if progress is False:
        return None
    if not callable(progress):
        raise TypeError("progress= takes True or a function of one argument")
    return progress
