"""Who lets a program go on that a killed debugger has left stopped.

A debugger stops threads by SIGSTOP. One that a thread has not taken when the debugger is killed is
the program's: all of it stays in ``T (stopped)``. So while darc is in a program that outlives the
debugger, a small shell waits for the debugger's end. Where nobody had told it before that the
debugger lets the program go, it looks at the program for a moment, and sends SIGCONT where that is
stopped and traced by nobody.

The shell is in a session of its own, so that what ends the debugger's does not end it. It knows of
the debugger's end by a pipe, of which that alone has the other end.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

from darc.debuggee import journal

_LEAVE = b"leave\n"

_SCRIPT = r"""
# darc: lets process $1, which began at $2, go on when its debugger was killed
exec 3<&0  # what is in the background has no input of its own
look() {  # at the thread whose folder is $1: what is behind its name, which may be of several lines
    line=
    while read -r part; do line=$part; done 2>/dev/null <"$1/stat"
    line=${line##*) }
    [ "$line" ]
}
(
    read -r word <&3
    [ "$word" = leave ] && exit
    looks=0 still=0
    while [ $looks -lt 200 ] && [ $still -lt 10 ]; do
        look "/proc/$1" || exit
        set -- "$1" "$2" $line
        [ "${22}" = "$2" ] || exit
        tracer=
        while read -r name value rest; do
            [ "$name" = TracerPid: ] && tracer=$value
        done <"/proc/$1/status"
        if [ "$tracer" = 0 ]; then
            still=$((still + 1))
            for task in "/proc/$1/task"/*; do
                look "$task" || continue
                case $line in
                T*)
                    kill -CONT "$1"
                    break
                    ;;
                esac
            done
            for task in "/proc/$1/task"/*; do
                children=
                read -r children <"$task/children"  # a line without an end
                for child in $children; do
                    look "/proc/$child" || continue
                    read -r call rest <"/proc/$child/syscall" || continue
                    case "$line $call" in
                    T*" "56 | T*" "57 | T*" "58 | T*" "435) kill -CONT "$child" ;;
                    esac
                done
            done
        fi
        looks=$((looks + 1))
        sleep 0.05
    done
) &
"""
"""For any POSIX shell. Ten seconds for whoever traces the program to let it go; half a second then,
as a thread takes its SIGSTOP when it next runs."""


class Guardian:
    """Watches over one process from now on. For the debugger's own thread."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pipe = -1
        reader, writer = os.pipe()
        try:
            began = journal.name_of(pid).rpartition("-")[2]
            command = ["/bin/sh", "-c", _SCRIPT, "darc-guardian", str(pid), began]
            subprocess.run(
                command,
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
                check=True,
            )
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        self._pipe = writer

    def leave(self) -> None:
        """The debugger lets the process go, or it is gone."""
        if self._pipe >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, _LEAVE)
        self.lose()

    def lose(self) -> None:
        """The debugger has lost the process, and lives: it is to go on as if that had ended."""
        pipe, self._pipe = self._pipe, -1
        if pipe >= 0:
            os.close(pipe)
