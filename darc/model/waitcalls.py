"""Functions that wait, by their names: as long as they are told to, for whatever comes next, or
until somebody hands something over. That they take long says nothing of them."""

from __future__ import annotations

import re

from darc.model.ftree import Function
from darc.model.libraries import plain_name

SLEEPS = frozenset(
    "nanosleep clock_nanosleep usleep sleep thrd_sleep pause sigsuspend sigtimedwait "
    "g_usleep uv_sleep apr_sleep".split()
)
"""Functions that take as long as their callers say, or until a signal comes: none of them is slow,
whoever calls it may be."""

_SLEEP_FOR = re.compile(r"_ZNSt(3__1)?11this_thread(9sleep_for|11sleep_until)")
"""The same of C++."""

EVENT_WAITS = frozenset(("epoll_wait", "epoll_pwait", "epoll_pwait2"))
"""Functions that threads wait in for whatever comes next, wherever that is called."""

WAITS_FOR_NEXT = EVENT_WAITS | frozenset(
    "poll ppoll select pselect accept accept4 io_getevents io_pgetevents io_uring_wait_cqe "
    "io_uring_wait_cqes io_uring_wait_cqe_timeout io_uring_submit_and_wait "
    "io_uring_submit_and_wait_timeout".split()
)
"""What a thread calls that waits for whatever comes next."""

HANDED = frozenset(
    "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait cnd_wait "
    "cnd_timedwait sem_wait sem_timedwait "
    "sem_clockwait recv recvfrom recvmsg recvmmsg mq_receive mq_timedreceive msgrcv "
    "sigwait sigwaitinfo sigtimedwait".split()
)
"""What a thread calls that waits until another one hands it something: a result that it needs, or
the next piece of work."""

_CONDITION = re.compile(r"_ZNSt(3__1)?18condition_variable(?:4wait|8wait_for|10wait_until)")
"""The same of C++."""

_SYSTEM_CALL = re.compile(r"(?:x64|ia32|ia32_compat|compat)_sys_")
"""What stands before the name of a kernel's function that carries out a system call."""

_WAITS = SLEEPS | WAITS_FOR_NEXT | HANDED


def is_sleep(function: Function) -> bool:
    """Whether it is one of :data:`SLEEPS`, by its name."""
    symbol = function.symbol
    return plain_name(symbol) in SLEEPS or _SLEEP_FOR.match(symbol) is not None


def is_wait(function: Function) -> bool:
    """Whether it is a sleep, or waits for what comes next, or to be handed something; a kernel's
    system call is what a program calls."""
    symbol = function.symbol
    plain = _SYSTEM_CALL.sub("", plain_name(symbol), count=1)
    return plain in _WAITS or is_sleep(function) or _CONDITION.match(symbol) is not None
