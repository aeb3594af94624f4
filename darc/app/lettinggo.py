"""What becomes of an analysis where the debugger lets its program go, or has lost it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from darc.app.stay import Stay
from darc.model.errors import UsageError
from darc.session.session import Session
from darc.target.target import State, Target


class LettingGo:
    """From ``target``'s program, where ``stay`` is what goes with the last analysis of it.
    ``emit`` takes what the user should know, ``tell_end`` shows what is known by then."""

    def __init__(
        self,
        target: Target,
        stay: Stay,
        emit: Callable[[str], None],
        tell_end: Callable[[], None],
    ) -> None:
        self._target = target
        self._stay = stay
        self._emit = emit
        self._tell_end = tell_end

    def check(self, session: Session | None) -> None:
        """Raises UsageError: the program runs, and has probes in its code, which could not be taken
        out as it is let go of."""
        target = self._target
        if session is None or not session.alive or session.pauses.are_out or not target.attached:
            return
        if target.state is State.RUNNING:
            raise UsageError(
                f"the {session.debuggee.nature.noun} runs, and darc's probes come out only while "
                "it stands still: type 'interrupt' first"
            )

    def let_go(self, session: Session | None, *, stopped: bool) -> None:
        """Nothing of darc stays in the program; ``stopped`` says that it stands still, though the
        debugger calls it running."""
        is_untold = self._is_untold(session)
        # The debugger stops it then, for a moment, as one that is killed may have.
        runs = not stopped and self._target.attached and self._target.state is State.RUNNING
        if session is not None and session.alive:
            if stopped or self._target.state is State.STOPPED:
                session.stop()
            elif self._target.attached:
                nature = session.debuggee.nature
                why = f"the {nature.noun} was let go of while it ran: {nature.left_in}"
                session.ways_out.abandon(why)
                self._emit(f"darc: {why}")
            else:
                session.program_ended()
        if not stopped and self._target.attached:
            self._stay.give_back()
            self._stay.tell_of_memory()
            if session is not None:
                self._stay.tell_of_children(session.debuggee)
        self._stay.end(lost=runs)
        if is_untold:
            self._tell_by_then()

    def stop_for_it(self, session: Session | None) -> None:
        """The program has stopped for that alone, and is let go of next."""
        is_untold = self._is_untold(session)
        if session is not None:
            session.stop()
        if is_untold:
            self._tell_by_then()

    def lose(self, session: Session, pid: int, known: str | None) -> None:
        """The debugger has no hold any more of the program, which lives; ``known`` tells why, where
        that is known."""
        bare, why = (
            session.pauses.are_out,
            known or f"the debugger has lost process {pid}, which lives",
        )
        if not bare and known is None:
            left_in = session.debuggee.nature.left_in
            why = f"{why}: {left_in}; if it stays stopped, 'kill -CONT {pid}' lets it go on"
        session.ways_out.abandon(why)
        self._stay.end(lost=True)
        if not bare:  # else perhaps the debugger has let it go and is about to end
            self._emit(f"darc: {why}")

    def _is_untold(self, session: Session | None) -> bool:
        """Whether something is being analysed, of which nobody may see any more what is known by
        now, if that is not told as the debugger leaves."""
        if session is None or not session.alive or session.analysis.finished:
            return False
        question = session.analysis.question
        if question is not None and question.is_waited_for:
            return False
        return self._target.screen.is_script or session.analysis.ends_at_interrupt

    def _tell_by_then(self) -> None:
        """Where the debugger's output is gone, nobody hears of it."""
        with contextlib.suppress(Exception):
            self._tell_end()
