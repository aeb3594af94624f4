"""Who lets a program go on that a killed debugger has left stopped.

A debugger stops threads by SIGSTOP. One that a thread has not taken when the debugger is killed is
the program's: all of it stays in ``T (stopped)``. So while darc is in a program that outlives the
debugger, a small shell waits for the debugger's end. Where nobody had told it before that the
debugger lets the program go, it looks at the program for a moment, and sends SIGCONT where that is
stopped and traced by nobody. Then it notes in the program's journal that it has: who is stopped
later was not stopped by that debugger.

The shell is in a session of its own, so that what ends the debugger's does not end it. It knows of
the debugger's end by a pipe, of which that alone has the other end.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

from darc.code.system_calls import MAKING_CHILDREN
from darc.debuggee import journal

_LEAVE = b"leave\n"

_SCRIPT = r"""
# darc: lets process $1, which began at $2, go on when its debugger was killed; then notes $3 in
# what there is of the files $5 and so on; a child comes from the system calls $4
pid=$1 began=$2 note=$3 making=$4
shift 4
exec 3<&0  # what is in the background has no input of its own
look() {  # at the thread whose folder is $1: what is behind its name, which may be of several lines
    line=
    while read -r part; do line=$part; done 2>/dev/null <"$1/stat"
    line=${line##*) }
    [ "$line" ]
}
start_of() {  # the line $1, in its words; in ticks, of which a second has 100
    start=${20}
}
(
    read -r word <&3
    [ "$word" = leave ] && exit
    looks=0 still=0 died=
    while [ $looks -lt 200 ] && [ $still -lt 10 ]; do
        look "/proc/$pid" || exit
        start_of $line
        [ "$start" = "$began" ] || exit
        tracer=
        while read -r name value rest; do
            [ "$name" = TracerPid: ] && tracer=$value
        done <"/proc/$pid/status"
        if [ "$tracer" != 0 ]; then
            still=0
        else
            still=$((still + 1))
            [ "$died" ] || read -r died rest </proc/uptime
            for task in "/proc/$pid/task"/*; do
                look "$task" || continue
                case $line in
                T*)
                    kill -CONT "$pid"
                    break
                    ;;
                esac
            done
            for task in "/proc/$pid/task"/*; do
                children=
                read -r children <"$task/children"  # a line without an end
                for child in $children; do
                    look "/proc/$child" || continue
                    start_of $line
                    [ "$start" -le "${died%.*}${died#*.}" ] || continue  # nobody traced it
                    read -r call rest <"/proc/$child/syscall" || continue
                    case "$line" in
                    T*) case " $making " in *" $call "*) kill -CONT "$child" ;; esac ;;
                    esac
                done
            done
        fi
        looks=$((looks + 1))
        sleep 0.05
    done
    [ $still -lt 10 ] && exit
    for task in "/proc/$pid/task"/*; do  # one that has not run since, and is to take its SIGSTOP
        value=
        while read -r name value rest; do
            [ "$name" = SigPnd: ] && break
        done 2>/dev/null <"$task/status"
        case $value in
        *[4567cdef]????)
            kill -CONT "$pid"
            break
            ;;
        esac
    done
    for file; do
        [ -f "$file" ] && [ ! -L "$file" ] && printf %s "$note" >>"$file"
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
            name = journal.name_of(pid)
            began = name.rpartition("-")[2]
            files = [str(folder / name) for folder in journal.own_folders()]
            command = ["/bin/sh", "-c", _SCRIPT, "darc-guardian"]
            making = " ".join(str(int(one)) for one in MAKING_CHILDREN)
            command += [str(pid), began, journal.WENT_ON, making, *files]
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
