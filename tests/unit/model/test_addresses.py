"""Whose an address is."""

from darc.model.addresses import is_kernels


def test_a_process_has_the_lower_half_and_the_kernel_the_upper() -> None:
    assert not is_kernels(0)
    assert not is_kernels(0x7FFF_FFFF_F000), "a stack's end, with four levels of page tables"
    assert not is_kernels(0xFF_FFFF_FFFF_F000), "and with five"
    assert is_kernels(0xFF00_0000_0000_0000), "the direct map begins behind this, with five"
    assert is_kernels(0xFFFF_FFFF_8114_5430), "its own code, as it is linked"
