"""``make bench-real``: all programs, or those that are named. What was measured of each is kept,
and the page is written from that as soon as all are there."""

from __future__ import annotations

import argparse
import sys

from benchmarks.measure import ROOT, MeasurementError
from benchmarks.real.page import PAGE, page, section
from benchmarks.real.subjects import SUBJECTS
from benchmarks.real.trial import Measured, measure

_KEPT = ROOT / "build" / "benchmarks" / "real"


def main() -> None:
    names = [subject.name for subject in SUBJECTS]
    parser = argparse.ArgumentParser(prog="make bench-real")
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    chosen = parser.parse_args().only
    _KEPT.mkdir(parents=True, exist_ok=True)
    files = {name: _KEPT / f"{name}.json" for name in names}
    failed: list[str] = []
    for subject in SUBJECTS:
        if subject.name not in chosen:
            continue
        print(f"bench-real: {subject.name}", file=sys.stderr)
        try:
            measured = measure(subject)
        except MeasurementError as error:
            print(f"bench-real: {subject.name}: {error}", file=sys.stderr)
            failed.append(subject.name)
            continue
        files[subject.name].write_text(measured.to_json())
        print("\n".join(section(subject, measured)), flush=True)
    if failed:
        sys.exit(f"bench-real: not measured: {', '.join(failed)}")
    if all(file.exists() for file in files.values()):
        found = [Measured.from_json(file.read_text()) for file in files.values()]
        PAGE.write_text(page(list(zip(SUBJECTS, found, strict=True))))
        print(f"bench-real: all figures are in {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
