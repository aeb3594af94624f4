"""What the agent's tables in a kernel hold: of one function, and of sets."""

from __future__ import annotations

from darc.agent.layout import Room

ROOMS = tuple(
    Room(sites=4096, nodes=4096, routes=8192, records=16384, contexts=contexts, moments=moments)
    for contexts, moments in ((64, 8192), (16, 512))
)
"""What the tables hold: the second where there is no memory for the first."""
_FEW_FUNCTIONS = 500


def _rooms_of_set(nodes: int, records: int, blocks: int) -> tuple[Room, ...]:
    return tuple(
        Room(
            sites=8192,
            nodes=nodes,
            routes=2 * nodes,
            records=records // part,
            contexts=512 // part,
            kept=1,
            sheets=1,
            blocks=blocks // part,
        )
        for part in (1, 4)
    )


_ROOMS_OF_FEW = _rooms_of_set(nodes=128, records=32768, blocks=16384)
_ROOMS_OF_MANY = _rooms_of_set(nodes=512, records=65536, blocks=65536)


def rooms_for_set(functions: int) -> tuple[Room, ...]:
    """What the tables hold for a set of so many functions, of which interrupts' calls are told
    apart. There are two sizes, so that one set's tables are another one's."""
    return _ROOMS_OF_FEW if functions <= _FEW_FUNCTIONS else _ROOMS_OF_MANY


def rooms_down_to(least: Room) -> tuple[Room, ...]:
    """The rooms for a set of which that is the smallest."""
    return next(rooms for rooms in (_ROOMS_OF_FEW, _ROOMS_OF_MANY) if rooms[-1] == least)
