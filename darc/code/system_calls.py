"""Which processor's system calls they are: those who read no code ask here, without a decoder."""

from __future__ import annotations

from darc.code import x86_64_system_calls

SystemCall = x86_64_system_calls.SystemCall
AUDIT_ARCHITECTURE = x86_64_system_calls.AUDIT_ARCHITECTURE
COUNTER_IN_USER = x86_64_system_calls.COUNTER_IN_USER
MAKING_CHILDREN = x86_64_system_calls.MAKING_CHILDREN
