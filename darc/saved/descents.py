"""What a descent to root causes keeps in a session file beside its tree and its votes.

These are the parts called ``ops``, ``waits`` and ``doubts``, which only it writes and reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from darc.model.errors import FormatError
from darc.model.ops import KeptOps, OpClass
from darc.model.waits import Waits
from darc.saved import kept, storage, waits
from darc.saved.checked import DamagedFileError, read_list, read_text
from darc.saved.storage import Stored

_DOUBTS = "doubts"
"""What the part is called."""

_OWN = frozenset({kept.PART, waits.PART, _DOUBTS})


@dataclass(frozen=True)
class SavedDescent:
    """A session of a descent, with its parts read."""

    session: Stored
    ops: KeptOps | None = None
    """Those that were kept of the last round."""
    waits: Mapping[OpClass, Waits] = field(default_factory=dict)
    """Who kept these waiting, where that was watched."""
    doubts: tuple[str, ...] = ()
    """What users were told beside the paths."""

    def taken_up(self) -> SavedDescent:
        """The same for a search that goes on with it: its ops are of a run before."""
        ops = None if self.ops is None else replace(self.ops, of_saved_run=True)
        return replace(self, ops=ops)

    @property
    def others(self) -> dict[str, object]:
        """The parts that are none of these: the descent keeps them as they are."""
        return {key: part for key, part in self.session.parts.items() if key not in _OWN}


def to_parts(
    ops: KeptOps | None = None,
    waited: Mapping[OpClass, Waits] | None = None,
    doubts: Sequence[str] = (),
) -> dict[str, object]:
    """The parts, as JSON values by their names: those of what there is."""
    parts: dict[str, object] = {}
    if ops is not None:
        parts[kept.PART] = kept.to_part(ops)
    if waited:
        parts[waits.PART] = waits.to_part(waited)
    if doubts:
        parts[_DOUBTS] = list(doubts)
    return parts


def from_session(stored: Stored) -> SavedDescent:
    """A session with its parts.

    Raises:
        DamagedFileError: they are not as :func:`to_parts` would make them.
    """
    parts = stored.parts
    waited = waits.from_part(parts.get(waits.PART, {}))
    ops = None
    if parts.get(kept.PART) is not None:
        nodes = list(stored.root.walk())
        ops = kept.from_part(parts[kept.PART], nodes, sees_waits=bool(waited))
    where = f"parts.{_DOUBTS}"
    told = enumerate(read_list(parts.get(_DOUBTS, []), where))
    doubts = tuple(read_text(value, f"{where}[{number}]") for number, value in told)
    return SavedDescent(stored, ops, waited, doubts)


def read_file(file: Path) -> SavedDescent:
    """The session in ``file``, as :func:`darc.saved.storage.read_file` has it, with its parts.

    Raises:
        NotFoundError, UsageError, TargetError: as that does.
        FormatError: it holds no session, a damaged one, or one of a later release.
    """
    try:
        return from_session(storage.read_file(file))
    except DamagedFileError as error:
        raise FormatError(f"{file} {error}") from None
