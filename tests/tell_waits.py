"""For ``with-app``: the waits of each kept op go to ``waits.json``, with the names in them."""

import json
from pathlib import Path

from darc.analyses.waitnames import ProgramNames
from darc.analyses.wakeups import waits_and_sleeps_of

app = globals()["app"]
session = app.session
snapshot = session.snapshot()
kept = snapshot.ops
names = ProgramNames(session.program, kept.threads if kept else {})
ops = [
    {
        "class": op.kept_as.value,
        "start": op.start,
        "end": op.end,
        "latency": op.latency,
        "thread": op.thread,
        "lost": op.lost_events,
        "waits": [
            {
                "kind": wait.begin.kind.value,
                "object": names.object(wait.begin.kind, wait.begin.object)
                if wait.begin.object
                else "",
                "path": names.path(wait.begin.stack, snapshot.function),
                "start": wait.begin.time,
                "end": wait.end,
                "parts": [
                    {
                        "role": part.role.value,
                        "cycles": part.end - part.start,
                        "thread": part.by.thread if part.by else 0,
                        "outside": part.by is not None and part.by.is_outside,
                        "path": names.path(part.by.stack, None) if part.by else (),
                    }
                    for part in wait.parts
                ],
            }
            for wait in waits_and_sleeps_of(op)
        ],
    }
    for op in (kept.ops if kept else ())
]
told = {
    "ops": ops,
    "not_kept": kept.not_kept if kept else 0,
    "not_followed": kept.not_followed if kept else 0,
    "sees": bool(kept and kept.sees_waits),
    "notes": list(session.notes),
    "least": min((op.least for op in kept.ops), default=0) if kept else 0,
}
Path("waits.json").write_text(json.dumps(told))
