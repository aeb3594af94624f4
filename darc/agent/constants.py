"""The constants of ``abi.h``, as the agent was compiled with them.

Written by ``tools/agent_constants.py`` from the header: run that where one comes or goes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

_PREFIX = "DARC_"
"""What the header has before each name."""


@dataclass(frozen=True)
class Constants:
    """Those of the agent, by their names in its header."""

    ABI_VERSION: int
    ACTION: int
    ANALYSE: int
    APART_EVENTS: int
    ASIDES: int
    BARRIER: int
    BELL_MARK: int
    BY_NOTHING: int
    BY_STACK: int
    BY_STORAGE: int
    CALL: int
    CALL_BINS: int
    COND_WAIT: int
    DISK: int
    DISK_END: int
    ELSEWHERE: int
    END: int
    ENDED: int
    EVENT_NONE: int
    EVENT_RELEASE: int
    EVENT_SHEETS: int
    EVENT_UNFOLLOWED: int
    EVENT_WAIT: int
    EVENT_WORDS: int
    EXIT: int
    F0: int
    FAULTS: int
    FEW_INTERRUPTED: int
    FIRST_EVENTS: int
    FIRST_REAL_TIME: int
    FREE: int
    FREED: int
    HANDLER: int
    HASH: int
    HASH_SHIFT: int
    HERD_CALLS: int
    HERD_OPS: int
    HERD_PART: int
    HIDE: int
    INTERRUPT: int
    JOIN: int
    JUMP: int
    KEPT_CLASSES: int
    KEPT_FEW: int
    KEPT_OPS: int
    LANDINGS: int
    LANDING_BACK: int
    LANDING_BODIES: int
    LANDING_CALLERS: int
    LANDING_ENTER: int
    LANDING_FEW: int
    LANDING_SITES: int
    LANDING_SIZE: int
    LANDING_WORDS: int
    LATE_TARGETS: int
    LEFT: int
    LOCK: int
    LOCK_BY_CLOCK: int
    LONG_PART: int
    LOOPS_PAPER: int
    LOOPS_TOGETHER: int
    MAGIC: int
    MAX_AREAS: int
    MAX_BINS: int
    MAX_CODE: int
    MAX_DEPTH: int
    MAX_EVENTS: int
    MAX_FROM: int
    MAX_HANDLERS: int
    MAX_OLDER: int
    MAX_SPANS: int
    MAX_SUMS: int
    MAX_SWITCHES: int
    MAX_TAILS: int
    MAX_TARGETS: int
    MEMBER: int
    MOMENT_DISK: int
    MOMENT_NONE: int
    MOMENT_SWITCH: int
    MOMENT_WAKE: int
    MOMENT_WORDS: int
    MOMENT_WORK: int
    NEVER: int
    NO_PARENT: int
    OTHERS: int
    PASSED: int
    PASSES: int
    PROBE_LIMIT: int
    PROFILE: int
    QUIET: int
    RDLOCK: int
    RDLOCK_BY_CLOCK: int
    RDLOCK_UNTIL: int
    REPEATED: int
    REQUESTS: int
    RINGING: int
    RWLOCK: int
    RWLOCK_BY_CLOCK: int
    RWLOCK_UNTIL: int
    SANDBOX: int
    SEM_WAIT: int
    SEM_WAIT_BY_CLOCK: int
    SEM_WAIT_UNTIL: int
    SET: int
    SHEETS: int
    SHEET_EVENTS: int
    SHORT_OF_CONTEXTS: int
    SHORT_OF_RECORDS: int
    SHOW: int
    STACK_SHIFT: int
    SWITCH: int
    TAIL: int
    TAKERS: int
    THE_CONTROL: int
    THE_RECORDS: int
    THE_SITE: int
    THREAD_HASH: int
    THREAD_LIMIT: int
    THREAD_SHIFT: int
    UNLOCK: int
    UNTIMED: int
    WAITERS: int
    WAITER_STEPS: int
    WAITING: int
    WAIT_HASHES: int
    WAIT_SHIFT: int
    WAKE: int
    WORK: int

    @classmethod
    def of(cls, found: Mapping[str, int]) -> Constants:
        """As they were ``found`` in the compiled agent. Raises KeyError: it lacks one."""
        names = [one.name for one in dataclasses.fields(cls)]
        return cls(**{name: found[_PREFIX + name] for name in names})

    def named(self, name: str) -> int:
        """One that a value names as the header does: ``DARC_HIDE``."""
        value = getattr(self, name.removeprefix(_PREFIX))
        assert isinstance(value, int)
        return value
