"""Which function of a running program a name means: what ``break`` finds, and more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from darc.code.demangle import base_symbol, demangle_cxx, rust_spelling
from darc.code.midway import why_none
from darc.code.modules import Module
from darc.code.program import Program
from darc.code.spelling import (
    MOST_LISTED,
    address_of,
    ambiguous,
    files_there,
    find_symbols,
    near_names,
    not_found,
    shortened,
    split_offset,
    split_spec,
)
from darc.code.symbols import FunctionSymbols
from darc.code.symscans import is_cold_name
from darc.model.errors import (
    AmbiguousError,
    NotFoundError,
    TargetError,
    UnchosenError,
    UnsupportedError,
    UsageError,
)
from darc.model.ftree import CallKind
from darc.model.libraries import is_loader
from darc.target.target import Target

_FEW_NAMES = 4
"""Of so many at one address each is looked for by itself."""


class Lookup:
    """Looks up functions of ``program``; the debugger is asked where the symbols do not tell.
    ``progress`` is told what is done."""

    def __init__(
        self, program: Program, target: Target, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self._program = program
        self._target = target
        self._progress = progress

    def find(self, spec: str, *, hint: bool = True) -> int:
        """Entry address of ``f``, ``file.c:f``, ``lib.so!f``, ``Class::f``, ``FILE+0xOFFSET`` or
        ``*ADDRESS``.

        Raises:
            UnsupportedError: a file that it may be in cannot be had.
            NotFoundError: nothing has that name; near names are told where the user is to see it
                (``hint``), as to find them takes some time.
            AmbiguousError: several functions have it; their exact spellings are told.
            UsageError: it is in the middle of a function.
        """
        more = self._program.has_more
        try:
            return self._find(spec, hint=hint and not more)
        except NotFoundError:
            if not more:
                raise
        self._program.look_further()
        return self._find(spec, hint=hint)

    def _find(self, spec: str, *, hint: bool) -> int:
        if spec.startswith("*"):
            return self._find_address(spec)
        if (place := split_offset(spec)) is not None:
            return self._find_offset(spec, *place)
        scope, name = split_spec(spec)
        if scope is not None and not scope.endswith("!"):
            inside = self._target.symbols.functions_in(scope, name)
            return self._one(spec, set(filter(self._program.knows, inside)), hint)
        modules = self._program.names.modules_called(scope)
        if scope is not None and not modules:
            raise NotFoundError(self._no_file_called(scope[:-1]))
        found = _called(modules, name, self._progress)
        if not found and scope is None and not name.isidentifier():
            told = self._target.symbols.functions_called(name)
            found = set(filter(self._program.knows, told))
        found = found if scope is not None else self._not_the_loaders(found)
        return self._one(spec, found, hint)

    def private_copies(self, entry: int, *, live: bool) -> list[str]:
        """What to type for the copies of a function that a compiler has made for its callers:
        clones that have a name, and what is behind a test that was put into them
        (``f.part.0``, which a stripped file does not name), to which ``f`` itself jumps then.
        Addresses are of the running program, or those of its file before it runs."""
        module = self._program.module_at(entry)
        found = {entry: ""}
        if module is None:
            return []
        own = tuple(module.image.symbols.names_at(entry - module.bias))
        symbols = module.image.symbols
        few = len(own) <= _FEW_NAMES
        for symbol in (s for name in own for s in symbols.holding(name)) if few else symbols:
            if not symbol.name.startswith(own) or symbol.name in own:
                continue
            if base_symbol(symbol.name) in own and not is_cold_name(symbol.name):
                found.setdefault(symbol.address + module.bias, symbol.name)
        for site in self._program.function(entry).sites:
            if site.kind is CallKind.TAIL and site.target is not None:
                is_named = module.image.symbols.at(site.target - module.bias) is not None
                is_else = self._program.linkage.jump_slot(site.target) is not None  # in a library
                if not (is_named or is_else) and self._program.module_at(site.target) is module:
                    address = site.target if live else site.target - module.bias
                    found.setdefault(site.target, f"*{address:#x}")
        return [text for text in found.values() if text]

    def _not_the_loaders(self, addresses: set[int]) -> set[int]:
        """The dynamic linker has some functions of the C library for itself alone (``memcpy``), and
        is there before that."""
        modules = {address: self._program.module_at(address) for address in addresses}
        others = {
            a for a, module in modules.items() if module is None or not is_loader(module.name)
        }
        if others or not addresses or not self._is_loading():
            return others or addresses
        return set()

    def _is_loading(self) -> bool:
        """Whether a library that is loaded with the program is not there yet."""
        there = {name for m in self._program.modules for name in (m.name, m.image.dynamic.soname)}
        return not self._program.problems and any(
            not m.image.dynamic.libraries <= there for m in self._program.modules
        )

    def _no_file_called(self, name: str) -> str:
        there = [one.name for one in self._program.modules]
        near = near_names(name, set(there)) or f": {files_there(there)}"
        return f"no loaded file is called {name}{near}"

    def _find_address(self, spec: str) -> int:
        address = address_of(spec)
        if not self._program.is_code(address):
            raise NotFoundError(f"no code is mapped at {address:#x}")
        self._check_beginning(address)
        return address

    def _find_offset(self, spec: str, scope: str, offset: int) -> int:
        """What is at an address of a file, which is its offset in memory from where that lies."""
        modules = self._program.names.modules_called(scope)
        if not modules:
            raise NotFoundError(self._no_file_called(scope[:-1]))
        addresses = {module.bias + offset for module in modules}
        found = {address for address in addresses if self._program.is_code(address)}
        if not found:
            raise UsageError(f"at {spec} is no code")
        if len(found) > 1:
            raise AmbiguousError(ambiguous(spec, [f"*{address:#x}" for address in found]))
        address = found.pop()
        self._check_beginning(address)
        return address

    def _check_beginning(self, address: int) -> None:
        """Raises UsageError: it lies in the middle of a function."""
        module = self._program.module_at(address)
        if module is not None:
            why = why_none(module.image, address - module.bias, module.bias)
            if why is not None:
                raise UsageError(why)

    def _one(self, spec: str, addresses: set[int], hint: bool) -> int:
        resolved = {self._real_entry(address) for address in addresses}
        if len(resolved) == 1:
            entry = resolved.pop()
            if entry in addresses and self._is_resolver(entry):
                raise UnchosenError(
                    f"the program chooses which {spec} it takes when it needs one (IFUNC), and has "
                    "not yet",
                    entry,
                )
            self._check_beginning(entry)
            return entry
        if not resolved:
            for line in self._program.missed:
                raise UnsupportedError(line)
            names = (s.name for _, s in self._program.names.all_symbols()) if hint else ()
            untold = self._program.names.untold(spec) if hint else ""
            raise NotFoundError(not_found(spec, names) + untold)
        # To tell how each is typed takes a look at all symbols, three times at worst.
        spelt = {address: self._spelling(address) for address in sorted(resolved)[:MOST_LISTED]}
        often = Counter(spelt.values())
        # Versions of one symbol, say, have one name and stand in one file.
        exact = [
            spelling
            if often[spelling] == 1 and spelling[0] != "*"
            else f"*{address:#x} ({self._place(address)})"
            for address, spelling in spelt.items()
        ]
        raise AmbiguousError(ambiguous(spec, exact, len(resolved)))

    def _real_entry(self, address: int) -> int:
        """For an indirect function (IFUNC) what its resolver chose, where a GOT slot tells; else
        the resolver."""
        chosen = self._chosen(address) if self._is_resolver(address) else address
        return address if chosen is None else chosen

    def _is_resolver(self, address: int) -> bool:
        module = self._program.module_at(address)
        symbol = None if module is None else module.image.symbols.at(address - module.bias)
        return symbol is not None and symbol.ifunc

    def _chosen(self, resolver: int) -> int | None:
        """What a slot that ``resolver`` is responsible for leads to by now."""
        for slot in self._slots_of(resolver):
            try:
                bound = int.from_bytes(self._program.read(slot, 8), "little")
            except TargetError:
                continue
            # Until it is filled it leads into the middle of a PLT, to the resolver or nowhere.
            if (
                bound != resolver
                and self._program.is_code(bound)
                and self._program.outlines.is_function_start(bound)
            ):
                return bound
        return None

    def _slots_of(self, resolver: int) -> Iterator[int]:
        own = self._program.module_at(resolver)
        assert own is not None
        for slot in own.image.dynamic.resolver_slots.get(resolver - own.bias, ()):
            yield slot + own.bias
        names = {s.name for s in own.image.symbols.all_at(resolver - own.bias) if not s.is_old}
        for module in self._program.modules:
            for slot, name in module.image.dynamic.got_names.items():
                if name in names:
                    yield slot + module.bias

    def _line_at(self, address: int) -> tuple[str, int] | None:
        return self._target.symbols.line_at(address) if self._program.knows(address) else None

    def _place(self, address: int) -> str:
        """Where a function stands that no name tells from others."""
        line = self._line_at(address)
        if line is not None:
            return f"{Path(line[0]).name}:{line[1]}"
        module = self._program.module_at(address)
        return "" if module is None else f"{module.name}+{address - module.bias:#x}"

    def _spelling(self, address: int) -> str:
        function = self._program.names.function_at(address)
        signature = rust_spelling(function.symbol) or demangle_cxx(function.symbol)
        if signature is not None and signature != function.name:
            overloads = _called(self._program.modules, signature, self._progress)
            if {self._real_entry(a) for a in overloads} == {address}:
                return signature
        same = {
            self._real_entry(a)
            for a in _called(self._program.modules, function.name, self._progress)
        }
        if same == {address}:
            return function.name
        module = self._program.module_at(address)
        if module is not None:
            inside = _called([module], function.name, self._progress)
            if inside == {address}:
                return f"{module.name}!{function.name}"
        line = self._line_at(address)
        if line is not None:
            return f"{Path(line[0]).name}:{function.name}"
        return f"*{address:#x}"


def _called(modules: Sequence[Module], name: str, progress: Callable[[str], None]) -> set[int]:
    if name == "main" and not any(m.image.symbols.named((name,)) for m in modules):
        mains = ((m.image.unnamed_main, m.bias) for m in modules)
        found = {main + bias for main, bias in mains if main is not None}
        if found:  # not those of classes and namespaces
            return found
    return find_symbols(_told(modules, name, progress), name, progress)


def _told(
    modules: Sequence[Module], name: str, progress: Callable[[str], None]
) -> Iterator[tuple[FunctionSymbols, int]]:
    """Their symbols, and where they are loaded. To read those of a large program takes seconds."""
    for module in modules:
        progress(f"looks for {shortened(name)}")
        yield module.image.symbols, module.bias
