"""The names are those of c++filt -p; the symbols come from g++ 12 and rustc."""

import shutil
import subprocess
import sysconfig

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.code import demangle
from darc.code.demangle import base_symbol, demangle_rust, display_name, without_signature
from darc.code.spelling import fitting

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
STRING_SYMBOL = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

CXX = {
    "_Z2fni": "fn",
    "_Z10returns_fpi": "returns_fp",
    "_Z15tmpl_returns_fpIiEPFvcET_": "tmpl_returns_fp<int>",
    "_Z3depISt6vectorIiSaIiEEENT_10value_typeES3_": (
        "dep<std::vector<int, std::allocator<int> > >"
    ),
    f"_Z4packIJic{STRING_SYMBOL}EEvDpT_": f"pack<int, char, {STRING} >",
    "_Z6fptargIXadL_Z2fniEEEvv": "fptarg<&(fn(int))>",
    "_Z8takes_fpPFviPFclEERA3_i": "takes_fp",
    "_ZN12_GLOBAL__N_11H1mEv": "(anonymous namespace)::H::m",
    "_ZN12_GLOBAL__N_16hiddenEi": "(anonymous namespace)::hidden",
    "_ZN2OpclIiEET_S1_i": "Op::operator()<int>",
    "_ZN2OpcmEi": "Op::operator,",
    "_ZN2OpcvPiEv": "Op::operator int*",
    "_ZN2OpdaEPv": "Op::operator delete[]",
    "_ZN2OpgtES_": "Op::operator>",
    "_ZN2OpixEi": "Op::operator[]",
    "_ZN2OpleES_": "Op::operator<=",
    "_ZN2OplsEi": "Op::operator<<",
    "_ZN2OpnwEm": "Op::operator new",
    "_ZN2OppmEi": "Op::operator->*",
    "_ZN2OpptEv": "Op::operator->",
    "_ZNK2OpclEi": "Op::operator()",
    "_ZNK2OpltERKS_": "Op::operator<",
    "_ZNK2OpltIiEEbT_": "Op::operator< <int>",
    "_Znwm": "operator new",
    "_Zli3_kme": 'operator"" _km',
    "_ZN2ns5ClassIiE1fEi": "ns::Class<int>::f",
    "_ZN2ns5ClassIiE1hIiEET_S3_i": "ns::Class<int>::h<int>",
    "_ZN2ns5ClassIiED2Ev": "ns::Class<int>::~Class",
    "_ZN2ns5ClassIPFvicEE1fES2_": "ns::Class<void (*)(int, char)>::f",
    "_ZNK2ns5ClassIPFvicEEcvbEv": "ns::Class<void (*)(int, char)>::operator bool",
    "_ZN2ns5ClassIiEcvSt6vectorIiSaIiEEEv": (
        "ns::Class<int>::operator std::vector<int, std::allocator<int> >"
    ),
    f"_ZN2ns5ClassI{STRING_SYMBOL}E1fES6_": f"ns::Class<{STRING} >::f",
    "_ZNKR2ns5ClassIiE4crefEv": "ns::Class<int>::cref",
    "_ZNO2ns5ClassIiE3refEv": "ns::Class<int>::ref",
    "_ZN2ns7nontypeILin5ELb1EEEiv": "ns::nontype<-5, true>",
    "_ZN2ns7free_daIiEEDcT_": "ns::free_da<int>",
    "_ZZ3lamiEN5Local2goEi": "lam(int)::Local::go",
    "_ZZ3lamiENKUliE_clEi": "lam(int)::{lambda(int)#1}::operator()",
    "_ZZ3lamiENKUlT_E0_clIdEEDaS_": "lam(int)::{lambda(auto:1)#2}::operator()<double>",
    "_ZZNK1A1fEvENKUlvE_clEv": "A::f() const::{lambda()#1}::operator()",
    "_ZNSt17_Function_handlerIFiiEZ3useiEUliE_E9_M_invokeERKSt9_Any_dataOi": (
        "std::_Function_handler<int (int), use(int)::{lambda(int)#1}>::_M_invoke"
    ),
    "_ZThn16_N1B1fEv": "non-virtual thunk to B::f",
    "_ZTV1B": "vtable for B",
}

RUST = {
    "_RNvCs6GmmlP4bgsG_1r4main": "r::main",
    "_RINvCs6GmmlP4bgsG_1r5applyNCNCNvB2_4mains_00EB2_": (
        "r::apply::<r::main::{closure#1}::{closure#0}>"
    ),
    "_RINvNtCs6GmmlP4bgsG_1r1m3genThReAtj2_EEB4_": "r::m::gen::<(u8, &str, [u16; 2])>",
    "_RNvXNtCs6GmmlP4bgsG_1r1mINtB2_1ShENtB2_2Tr2goB4_": "<r::m::S<u8> as r::m::Tr>::go",
    "_RNvMs2_NtNtCsgEmfK2I1SDS_4core3fmt8buildersNtB5_10DebugTuple5field": (
        "<core::fmt::builders::DebugTuple>::field"
    ),
    "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDNtNt"
    "Cs6GmmlP4bgsG_1r1m2TrEL_EEB1k_": (
        "core::ptr::drop_in_place::<alloc::boxed::Box<dyn r::m::Tr>>"
    ),
    "_RNSNvYNCINvNtCsjrHSEGnQ3l9_3std2rt10lang_startuE0INtNtNtCsgEmfK2I1SDS_4core3ops8function"
    "6FnOnceuE9call_once6vtableCs6GmmlP4bgsG_1r": (
        "<std::rt::lang_start<()>::{closure#0} as core::ops::function::FnOnce<()>>"
        "::call_once::{shim:vtable#0}"
    ),
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y": (
        "utf8_idents::საჭმელად_გემრიელი_სადილი"
    ),
    "_RMC0INtC8arrayvec8ArrayVechKj7b_E": "<arrayvec::ArrayVec<u8, 123>>",
    "_RIC0FUKCG0_RL1_hRL0_tEuE": None,
    "_ZN3foo3barE": "foo::bar",  # C++'s, as it has no hash
    "_ZN1r4main17h086b0cfd890a8ea9E": "r::main",
    "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17ha86af84d9cc65291E": (
        "std::rt::lang_start::{{closure}}"
    ),
    "_ZN45_$LT$r..m..S$LT$T$GT$$u20$as$u20$r..m..Tr$GT$2go17h4a3ddda3b69170f2E": (
        "<r::m::S<T> as r::m::Tr>::go"
    ),
    "_ZN54_$LT$$LP$V$C$U$C$T$RP$$u20$as$u20$core..fmt..Debug$GT$3fmt17hde1b5bc854959831E": (
        "<(V,U,T) as core::fmt::Debug>::fmt"
    ),
    "_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h42e08618e5619cfaE": (
        "core::ops::function::FnOnce::call_once{{vtable.shim}}"
    ),
}

SUFFIXES = {
    "usleep": "usleep",
    "usleep@plt": "usleep",
    "memcpy@@GLIBC_2.14": "memcpy",
    "memcpy@GLIBC_2.2.5": "memcpy",
    "finish_task_switch.isra.0": "finish_task_switch",
    "work.constprop.0.isra.0": "work",
    "work.part.0.cold": "work",
    "work.llvm.1234567890": "work",
    "work [clone .cold]": "work",
    "loop._omp_fn.0": "loop",
    "_ZN2ns5ClassIiE1fEi.constprop.0": "ns::Class<int>::f",
    "_ZN2ns5ClassIiE1fEi.part.0@plt": "ns::Class<int>::f",
    "_ZN1r4main17h086b0cfd890a8ea9E.llvm.12345": "r::main",
    "main.main.func1.2": "main.main.func1.2",
    "_start": "_start",
    "_Zinvalid": "_Zinvalid",
    "_R": "_R",
    "": "",
}


@pytest.mark.parametrize(("symbol", "name"), [*CXX.items(), *SUFFIXES.items()])
def test_display_name(symbol: str, name: str) -> None:
    assert display_name(symbol) == name


@pytest.mark.parametrize(("symbol", "name"), RUST.items())
def test_rust(symbol: str, name: str | None) -> None:
    if name is None:
        assert demangle_rust(symbol) is None or "fn(" in display_name(symbol)
    else:
        assert display_name(symbol) == name


@pytest.mark.parametrize(
    ("declaration", "name"),
    [
        ("decltype(auto) ns::f<int>(int)", "ns::f<int>"),
        ("decltype ({parm#1}(1)) ns::apply<F>(F)", "ns::apply<F>"),
        ("int (&array<int>(int))[3]", "array<int>"),
        ("int ns::Class::* member<int>(int)", "member<int>"),
        ("int (&array<int>(int)) [3]", "array<int>"),
        ("int (*(*nested<int>(int))(char))[3]", "nested<int>"),
        ("A::operator void (*)(int)()", "A::operator void (*)(int)"),
        ("A::operator void (*)(int* const)()", "A::operator void (*)(int* const)"),
        ("f[abi:cxx11](int)", "f[abi:cxx11]"),
        ("void g<(A)1, &A::operator< >(int) const volatile &&", "g<(A)1, &A::operator< >"),
    ],
)
def test_without_signature(declaration: str, name: str) -> None:
    assert without_signature(declaration) == name


def test_without_a_runtime_names_stay_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangle, "_RUNTIMES", ("libdoes-not-exist.so.9",))
    demangle._runtime.cache_clear()
    display_name.cache_clear()
    try:
        assert display_name("_Z2fni.cold") == "_Z2fni"
        assert display_name("_RNvCs6GmmlP4bgsG_1r4main") == "r::main"
    finally:
        demangle._runtime.cache_clear()
        display_name.cache_clear()


@given(st.text(alphabet="_ZRNSTIEKL0123456789abcdefhijklmnpstvwxyz$.", max_size=40))
def test_any_text_has_a_name(text: str) -> None:
    for symbol in (text, f"_Z{text}", f"_R{text}", f"_ZN{text}E"):
        assert isinstance(display_name(symbol), str)


@given(st.text())
def test_any_declaration_is_stripped_without_error(text: str) -> None:
    without_signature(text)
    base_symbol(text)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_loads_inside_gdb() -> None:
    code = (
        f"import sys; sys.path[:0] = ['.', {sysconfig.get_path('purelib')!r}]\n"
        "from darc.code.demangle import display_name; print(display_name('_ZN2ns5ClassIiE1fEi'))"
    )
    result = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", "-ex", f"python exec({code!r})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "ns::Class<int>::f\n"


NESTED = (
    "_ZN5CacheISt5tupleIJSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES"
    "t6vectorIS0_IJS1_IS7_S8_IS0_IJS1_IS7_S8_IS0_IJS1_IS7_S8_IS0_IJS1_IS7_S8_IS0_IJS1"
    "_IS7_S8_IS1_IS7_S8_IiSaIiEESt4lessIS7_ESaISt4pairIKS7_SA_EEESaISH_EESC_SaISD_ISE"
    "_SJ_EEESD_ISH_iEEESaISO_EESC_SaISD_ISE_SQ_EEESD_ISO_iEEESaISV_EESC_SaISD_ISE_SX_"
    "EEESD_ISV_iEEESaIS12_EESC_SaISD_ISE_S14_EEESD_IS12_iEEESaIS19_EESC_SaISD_ISE_S1B"
    "_EEESD_IS19_iEEESaIS1G_EESC_SaISD_ISE_S1I_EEESD_IS1G_iEEEE4findEm"
)
"""Of a tuple of maps of tuples, six deep: its name has 7.5 million characters."""


def test_arguments_of_templates_that_nobody_reads_are_left_out() -> None:
    assert display_name(NESTED) == "Cache<…>::find"
    assert demangle.demangle_cxx(NESTED) == "Cache<…>::find(unsigned long)"
    for name in ("Cache::find", "Cache<…>::find", "Cache<…>::find(unsigned long)"):
        assert fitting(name, [NESTED]) == [NESTED]
    assert fitting("Cache<int>::find", [NESTED]) == []


@pytest.mark.parametrize(
    ("declaration", "shown"),
    [
        ("f<int>(g<char> const&)", "f<…>(g<…> const&)"),
        ("A<&(B::operator-><int>)>::operator<< <int>", "A<…>::operator<< <…>"),
        ("A<(x)->y>::f", "A<…>::f"),
    ],
)
def test_which_brackets_are_those_of_templates(declaration: str, shown: str) -> None:
    assert demangle._abridged(declaration) == shown
