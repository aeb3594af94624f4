"""What the user is told of an analysis at a stop, without asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from darc.analyses.question import About, Question
from darc.app.current import Current
from darc.session.message import Message
from darc.session.session import Session
from darc.target.target import Target
from darc.views import render
from darc.views.general.histogram import histogram
from darc.views.general.status import early_end, place, status
from darc.views.style import Style
from darc.views.treeview import drawn_nodes


class Telling:
    """Of the ``current`` analysis in ``target``'s program, drawn in the ``style`` of the terminal;
    ``emit`` takes what the user should know."""

    def __init__(
        self,
        target: Target,
        current: Current,
        style: Callable[[], Style],
        emit: Callable[[str], None],
    ) -> None:
        self._target = target
        self._current = current
        self._style = style
        self._emit = emit
        self._unanswered: Session | None = None
        """The session of which the user was told that it waits for an answer."""
        self._told_signals: set[str] = set()
        """Those that the user was told have stopped the program."""

    @property
    def live_style(self) -> Style:
        """How the line is drawn that changes while the program runs: it has room for the essential
        alone."""
        return replace(self._style(), verbose=False, wraps=False)

    def tell_what_there_is(self) -> None:
        """Shows what the session has to say at this stop, if anything."""
        session = self._current.session
        self.tell(None if session is None else session.take_message())

    def tell(self, what: Message | None) -> None:
        """Shows what the session has to say at a stop."""
        current, session = self._current, self._current.session
        if what is None or session is None:
            return
        style = self._style()
        question = session.analysis.question if what is Message.QUESTION else None
        if question is not None and current.pursuit is None:
            self._ask(session, question)
            return
        # lldb tells of an end on another thread
        shown = session.snapshot(lines=what is not Message.END)
        if current.pursuit is not None:
            self._emit(status(current.with_answer(session, shown), style))
        elif what is Message.PLACE:
            told = place(shown, style) or f"darc: {style.name(session.spec)} is over"
            for line in told.splitlines():
                self._emit(line)
        elif shown.paths:
            self._emit(render.paths(shown, style))
        else:
            self._emit((early_end if what is Message.END else status)(shown, style))

    def _ask(self, session: Session, question: Question) -> None:
        style = self._style()
        match question.about:
            case About.PROFILE:
                shown = histogram(session.snapshot(), style)
            case About.FTREE:
                drawn = session.snapshot(tree=lambda root: drawn_nodes(root, verbose=style.verbose))
                shown = render.tree(drawn, style)
            case About.PART:
                shown = status(session.snapshot(), style)
        self._emit(shown)
        self._emit(f"darc: {question.text}, then 'continue'")

    def tell_as_it_leaves(self) -> None:
        """Shows what is known as the debugger ends, or lets the program go: also a profile of f0,
        for which nobody can ask any more."""
        self.tell(Message.END)
        session = self._current.session
        if session is None or self._current.pursuit is not None:
            return
        shown = session.snapshot(lines=False)
        is_profile = shown.profile is not None and shown.profile.count and not shown.parts
        if is_profile and not shown.paths:
            self._emit(histogram(shown, self._style()))

    def tell_of_question(self, session: Session) -> None:
        """The user lets the program go on. Once, where the session waits for an answer."""
        question = session.analysis.question
        if session is self._unanswered or question is None or not question.is_waited_for:
            return
        self._unanswered = session
        if session.alive:
            self._emit(f"darc: {question.unanswered}")

    def tell_of_signal(self, spec: str, *, waits: bool = False) -> None:
        """Once for each signal that the program handles by itself, and that has stopped it.
        ``waits``: no call was seen yet, and nothing is analysed."""
        found = self._target.handled_signal
        if found is None or found.name in self._told_signals:
            return
        self._told_signals.add(found.name)
        now = f"still waits for {spec}" if waits else f"the analysis of {spec} is not done"
        self._emit(
            f"darc: {now}: {found.name}, which the program has a handler for, has stopped it; "
            f"'continue' goes on, and with '{found.command}' it does not stop for that"
        )
