"""What darc has to find in each fixture, and how the figures are checked that it tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from darc.model.profile import Profile
from fixtures.build import Fixture, find

PEAKS = {
    "cramped": ">8ms",
    "indirect": ">500us",
    "ipara": ">400us",
    "loop": "14-20",
    "mixture": ">1ms",
    "plugin": ">300us",
    "spread": ">1ms",
    "threads": ">700us",
}
"""Peaks are given by latency, well between the modes: what noise adds to the profile does not
change which calls are meant."""


OTHER_PEAK = ">150us"


OPTIONS = {
    "cramped": "--start-ops 60 --decision-ops 6",
    "loop": "--maxcount-percentage 0.9 --decision-ops 40",
}
"""Operations of ``cramped`` take milliseconds. Timing the 20000 calls of ``loop`` does so, too, and
other programs get their turn meanwhile: those operations are left out, and where the rest of it
falls is decided by more of them."""


OPERATIONS = {"threads": "32000", "loop": "64000"}
"""Of eight threads only two meet slow operations, when the others may have come to their end."""


FUNCTIONS = {"cppclass": "ns::Server::handle(unsigned int)"}


@dataclass(frozen=True)
class Case:
    """A fixture in one of the ways to use it."""

    name: str
    opt: str = "-O2"
    function: str | None = None
    paths: tuple[str, ...] = ()
    peak: str | None = None
    mode: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "-".join(filter(None, (self.name, self.opt[1:], self.function, *self.mode)))

    @property
    def fixture(self) -> Fixture:
        return find(self.name)

    @property
    def args(self) -> tuple[str, ...]:
        first, *rest = self.fixture.args
        return (OPERATIONS.get(self.name, first), *rest, *self.mode)

    @property
    def f0(self) -> str:
        return self.function or FUNCTIONS.get(self.name, self.fixture.function)

    @property
    def expected(self) -> set[tuple[str, ...]]:
        if self.paths:
            return {tuple(path.split(" → ")) for path in self.paths}
        return set(self.fixture.paths)

    @property
    def chosen_peak(self) -> str:
        return self.peak or PEAKS.get(self.name, OTHER_PEAK)


def check_numbers(report: dict[str, Any]) -> None:
    """What is counted in several ways agrees."""
    profile = report["profile"]
    bins = {int(number): count for number, count in profile["bins"].items()}
    assert profile["count"] == sum(bins.values())
    Profile(
        resolution=profile["resolution"],
        hz=profile["hz"],
        bins=bins,
        count=profile["count"],
        total=profile["sum"],
    ).check()
    assert [p["number"] for p in report["peaks"]] == list(range(1, len(report["peaks"]) + 1))
    for peak in report["peaks"]:
        inside = (n for b, n in bins.items() if peak["first_bin"] <= b <= peak["last_bin"])
        assert sum(inside) == peak["count"]
    assert sum(peak["count"] for peak in report["peaks"]) <= profile["count"]
    largest = max(path["maxcount"] for path in report["root_cause_paths"])
    assert largest <= report["program"]["in_peak_calls"]
    assert report["program"]["stops"] > 0
    assert report["program"]["stopped_seconds"] > 0
    nodes = list(walk(report["ftree"]))
    by_id = {node["id"]: node for node in nodes}
    assert len(by_id) == len(nodes)
    for node in nodes:
        assert [c["id"] for c in node["children"]] == [
            f"{node['id']}.{i}" for i in range(1, len(node["children"]) + 1)
        ]
    marked = {node["id"] for node in nodes if node["root_cause"]}
    for path in report["root_cause_paths"]:
        node = report["ftree"]
        assert node["function"] == path["functions"][0]
        assert node["id"] in marked
        for name in path["functions"][1:]:
            node = next(c for c in node["children"] if c["function"] == name and c["root_cause"])


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from walk(child)


NOMAP = ("handle", "work", "burn")
