"""Which call sites orders are about, and which fnodes meet at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from darc.code.architecture import Site
from darc.collectors.callees import Callees
from darc.model.ftree import Fnode
from darc.search.descent import Orders


@dataclass(frozen=True)
class Routes:
    """A call ``site`` that is timed."""

    site: Site
    callees: dict[Fnode, Fnode | None] = field(default_factory=dict)
    """Those that call there, each with what it calls; ``None``: that tells only the call."""


def routes_of(orders: Orders, callees: Callees) -> Mapping[int, Routes]:
    """What is to be timed for ``orders``, by the addresses of the call sites: the callees of every
    fnode that is analysed, and the calls that lead to it."""
    analysed, tracked = set(orders.analyse), orders.tracked
    found: dict[int, Routes] = {}
    for node in sorted(tracked, key=lambda n: (n.depth, n.path)):
        if node in analysed:
            is_exact = node in orders.exact
            wanted = callees.wanted(node, orders.batches.get(node), is_exact=is_exact)
        else:
            wanted = callees.by_site(c for c in node.children if c in tracked)
        for site, children in wanted:
            routes = found.setdefault(site.address, Routes(site))
            routes.callees[node] = children[0] if site.target is not None else None
    return found
