"""The agent leaves no address of its own behind on stacks, where nobody knows what is dead."""

from __future__ import annotations

import itertools
import re
import subprocess

from darc.agent.build import FORGET, HERE, forgetting


def test_each_call_in_the_agent_overwrites_what_it_has_pushed() -> None:
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", HERE / "agent.elf"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    code = re.findall(r"^ +([0-9a-f]+):\t(.*?) *$", listing, re.M)
    after = [behind for (_, one), behind in itertools.pairwise(code) if one.startswith("call")]
    assert len(after) > 100
    left = [at for at, one in after if not re.fullmatch(r"movq +\$0x0,-0x8\(%rsp\)", one)]
    assert not left, left


def test_debug_information_still_knows_where_a_call_comes_back_to() -> None:
    """A label that the compiler has put right behind a call stays there."""
    made = "\tcall\t*%rax\n.LVL7:\n\tmov\t%rax, %rdx\n\tjmp\tcall_it\n\tcall\tcall_it\n.L3:\n"
    assert forgetting(made) == (
        f"\tcall\t*%rax\n.LVL7:\n\t{FORGET}\n\tmov\t%rax, %rdx\n\tjmp\tcall_it\n"
        f"\tcall\tcall_it\n\t{FORGET}\n.L3:\n"
    )
