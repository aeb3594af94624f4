"""What comes of work that a debugger asks for."""

from __future__ import annotations

import pytest

from darc.target.outcome import Outcome, carry_out


def test_what_work_raises_is_told_and_something_comes_of_it_all_the_same() -> None:
    told: list[str] = []

    def fails() -> Outcome:
        raise ValueError("a mistake")

    def tell(error: Exception) -> None:
        told.append(str(error))

    assert carry_out(lambda: Outcome.STOP, failed=tell, instead=Outcome.CONTINUE) is Outcome.STOP
    assert not told
    assert carry_out(fails, failed=tell, instead=Outcome.CONTINUE) is Outcome.CONTINUE
    assert told == ["a mistake"]


def test_ctrl_c_is_no_failure() -> None:
    def pressed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(pressed, failed=lambda error: None, instead=None)
