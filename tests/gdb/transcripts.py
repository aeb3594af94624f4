"""What a debugger has printed, to be compared with what it prints without darc."""

from __future__ import annotations

import re


def same(text: str) -> list[str]:
    """What differs for good reasons is taken out: gdb's numbers of breakpoints, values and
    processes, and what it shows of arguments when it stops. These may be known by entry values
    alone, which gdb does not find at a pad (it does in the backtrace that follows), and what darc
    itself says."""
    text = re.sub(r"^darc: .*\n(?:  .*\n)*", "", text, flags=re.M)
    text = re.sub(r"\w+@entry=", "", text)
    text = re.sub(r"^((?!#)(?:.* in )?\w+ \().*(\) at )", r"\1…\2", text, flags=re.M)
    text = re.sub(r"(process |LWP |Thread 0x[0-9a-f]+ \(LWP )\d+", r"\1N", text)
    text = re.sub(
        r"^\d+( +(?:hw |read |acc )?(?:watchpoint|breakpoint|catchpoint))", r"N\1", text, flags=re.M
    )
    return [
        re.sub(r"((?:break|watch|catch)point|at|\$)( ?)\d+", r"\1\2N", line, flags=re.I)
        for line in text.splitlines()
    ]
