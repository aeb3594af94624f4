"""What stood where darc has written, against the plainest way to tell."""

from hypothesis import given
from hypothesis import strategies as st

from darc.code.overlay import Overlay

PATCHES = st.dictionaries(st.integers(0, 200), st.binary(min_size=1, max_size=20), max_size=12)


@given(PATCHES, st.integers(0, 200), st.integers(0, 80), st.data())
def test_own_bytes_are_read(
    patches: dict[int, bytes], address: int, size: int, data: st.DataObject
) -> None:
    own = bytes(range(256))
    overlay = Overlay()
    left: dict[int, bytes] = {}
    live = bytearray(own)
    for start, patch in patches.items():
        if any(start < s + len(p) and s < start + len(patch) for s, p in left.items()):
            continue
        left[start] = patch
        overlay[start] = own[start : start + len(patch)]
        live[start : start + len(patch)] = patch
    gone = data.draw(st.sets(st.sampled_from(sorted(left)))) if left else set()
    for start in gone:
        live[start : start + len(left[start])] = overlay.pop(start)
    assert list(overlay) == sorted(left.keys() - gone)
    assert len(overlay) == len(left) - len(gone)
    found = overlay.over(address, bytes(live[address : address + size]))
    assert found == own[address : address + size]
