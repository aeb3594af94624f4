from __future__ import annotations

from darc.analyses.idle import Idle
from darc.model.status import Status
from tests.unit.assembly import Assemble
from tests.unit.bench import Bench
from tests.unit.keptcalls import blocked
from tests.unit.machine import PLAIN


def test_idle(assembled: Assemble) -> None:
    code, watch = assembled(PLAIN), blocked(0.25)
    bench = Bench(code, Idle, watch=watch, start_ops=10, decision_ops=5, peak=None).install()
    bench.keep_ops().run(40)
    assert bench.session.snapshot().status is Status.DONE
    assert any("blocked: 25% of the time" in note for note in bench.session.notes)


def test_idle_where_no_call_is_kept(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), Idle, start_ops=10, peak=None).install()
    bench.run(40)
    assert bench.session.snapshot().status is Status.INCONCLUSIVE
