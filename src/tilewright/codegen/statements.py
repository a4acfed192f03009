"""Statements of a Program as C text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.base.dtype import dtype_of
from tilewright.codegen import words
from tilewright.core.expr import Size
from tilewright.core.plan import Place
from tilewright.core.program import (
    Argument,
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Invoke,
    Let,
    Literal,
    Mark,
    Maybe,
    Meet,
    MoveBytes,
    Number,
    OnCores,
    ParameterBlock,
    Pointer,
    Program,
    Release,
    StartEngine,
    Statement,
    Test,
)

LINE_LENGTH = 120


class StatementPrinter:
    """Prints statements of one program, whose constants are arrays or, in each section, one binary."""

    def __init__(self, program: Program, constants: Mapping[Place, str], *, binary: bool) -> None:
        self._constants, self._binary = constants, binary
        self._ctypes = {constant.place: dtype_of(constant.array).ctype for constant in program.constants}
        self._memories = [name for name, _ in program.memories]
        self._states_at = program.states_at

    def lines(self, statements: Sequence[Statement], indent: str) -> list[str]:
        return [line for statement in statements for line in self._statement(statement, indent)]

    def call(self, function: str, arguments: Sequence[str], indent: str) -> list[str]:
        """A call over as many lines as it needs."""
        lines = [f"{indent}{function}("]
        for index, argument in enumerate(arguments):
            piece = argument + (");" if index == len(arguments) - 1 else ",")
            if len(lines[-1]) + len(piece) + 1 > LINE_LENGTH and lines[-1].strip():
                lines.append(f"{indent}    {piece}")
            else:
                lines[-1] += piece if lines[-1].endswith("(") else f" {piece}"
        return lines if arguments else [f"{indent}{function}();"]

    def argument(self, argument: Argument) -> str:
        match argument:
            case Literal(text=text):
                return text
            case Number(value=value):
                return str(value)
            case ParameterBlock(ctype=ctype, fields=fields):
                return f"&({ctype}){{{', '.join(self.argument(f) for f in fields)}}}"
            case Maybe(pointer=pointer, value=value):
                return f"{value} == 0 ? {self._pointer(pointer)} : NULL"
            case Pointer():
                return self._pointer(argument)

    def _pointer(self, pointer: Pointer) -> str:
        place, ctype, offset = pointer.place, pointer.ctype, pointer.offset
        match place.space:
            case "constant" if self._binary or offset != 0:
                base = self._constants[place] if self._binary else _bytes(self._constants[place], const=True)
                return _typed(base, place.offset + offset if self._binary else offset, ctype, const=True)
            case "constant" if ctype not in ("void", self._ctypes[place]):
                return f"(const {ctype} *)(const void *){self._constants[place]}"
            case "constant":
                return self._constants[place]
            case "input" if offset != 0:
                return _typed(_bytes(f"inputs[{place.index}]", const=True), offset, ctype, const=True)
            case "input":
                return f"(const {ctype} *)inputs[{place.index}]"
            case "output" if place.offset or offset != 0:
                base = _bytes(f"outputs[{place.index}]", const=False)
                return _typed(base, place.offset + offset, ctype, const=False)
            case "output":
                return f"({ctype} *)outputs[{place.index}]"
            case "state" if self._memories:
                base = f"memory[{len(self._memories) - 1}]"
                return _typed(base, place.offset + offset, ctype, const=False, always=True)
            case "state":
                return _typed("base", self._states_at + place.offset + offset, ctype, const=False, always=True)
            case memory:
                base = f"memory[{self._memories.index(memory)}]" if self._memories else "base"
                return _typed(base, place.offset + offset, ctype, const=False, always=True)

    def _statement(self, statement: Statement, indent: str) -> list[str]:
        match statement:
            case Invoke(function=function, arguments=arguments, comment=comment):
                texts = [self.argument(a) for a in arguments]
                return [f"{indent}{words.comment(comment)}", *self.call(function, texts, indent)]
            case If(tests=tests, body=body):
                head = f"if ({' && '.join(map(_test, tests))}) {{" if tests else "{"
                return self._block(head, body, indent)
            case Let(name=name, value=value):
                return [f"{indent}const int {name} = {value};"]
            case For(name=name, start=start, stop=stop, body=body):
                return self._block(f"for (int {name} = {start}; {name} < {stop}; {name}++) {{", body, indent)
            case OnCores(name=name, count=count, body=body, beside=()):
                return self._block(f"TW_CORES({name}, {count}) {{", body, indent)
            case OnCores(name=name, count=count, body=body, beside=beside):
                waits = max((n + 1 for n, own in enumerate(beside) if _waits(own)), default=0)
                if not any(isinstance(own, Copy) for own in beside[waits:]):
                    driven = self._block("TW_BESIDE {", beside, indent)
                    return [*driven, *self._block(f"TW_CORES_BESIDE({name}, {count}) {{", body, indent)]
                # Cores need not wait for what is merely started.
                inner = indent + "    "
                driven = [*self.lines(beside[:waits], inner), f"{inner}TW_ARRIVE;", *self.lines(beside[waits:], inner)]
                head = f"TW_CORES_ARRIVED({name}, {count}) {{"
                return [f"{indent}TW_BESIDE {{", *driven, f"{indent}}}", *self._block(head, body, indent)]
            case Meet():
                return [f"{indent}TW_MEET;"]
            case Release(count=count):
                return [f"{indent}TW_RELEASE({count});"]
            case Driven(body=body):
                return self._block("TW_DRIVEN {", body, indent)
            case StartEngine(engine=engine, body=body, beside=beside, goes=goes):
                word = "TW_START" if goes else "TW_DESCRIBE"
                return [*self._block(f"{word}({engine}) {{", body, indent), *self.lines(beside, indent)]
            case AwaitEngine(engine=engine, recent=recent):
                return [f"{indent}TW_AWAIT({engine}, {int(recent)});"]
            case Mark(group=group, place=place, number=number):
                return [f"{indent}TW_MARK({group}, {place}, {number});"]
            case AwaitTransfers(channel=channel):
                return [f"{indent}tw_dma_wait({channel});"]
            case MoveBytes(to=to, source=source, bytes=size):
                arguments = [self._pointer(to), self._pointer(source), f"(size_t)({size})"]
                return self.call("memmove", arguments, indent)
            case Copy():
                return self._copy(statement, indent)

    def _block(self, head: str, body: Sequence[Statement], indent: str) -> list[str]:
        return [f"{indent}{head}", *self.lines(body, indent + "    "), f"{indent}}}"]

    def _copy(self, copy: Copy, indent: str) -> list[str]:
        """Loops around what the DMA does at once."""
        inside = max(min(copy.rank, 3) - 1, 0)
        outer = max(len(copy.counts) - inside, 0)
        lines: list[str] = []
        depth = indent
        to, source = self._pointer(copy.to), self._pointer(copy.source)
        names = [f"d{k}" for k in range(outer)]
        for name, count in zip(names, copy.counts, strict=False):
            lines.append(f"{depth}for (int {name} = 0; {name} < {count}; {name}++) {{")
            depth += "    "
        if outer:
            to = _stepped(self._raw(copy.to), names, copy.to_strides)
            source = _stepped(self._raw(copy.source), names, copy.source_strides)
        rows: list[str] = []
        missing = 2 - (len(copy.counts) - outer)
        axes = [("1", "0", "0")] * missing + [
            (str(c), str(t), str(s))
            for c, t, s in zip(copy.counts[outer:], copy.to_strides[outer:], copy.source_strides[outer:], strict=True)
        ]
        for count, near, far in reversed(axes):
            rows += [count, near, far]
        lines += self.call("tw_dma_start", [str(copy.channel), to, source, f"(size_t)({copy.bytes})", *rows], depth)
        for _ in names:
            depth = depth[:-4]
            lines.append(f"{depth}}}")
        return lines

    def _raw(self, pointer: Pointer) -> str:
        return self._pointer(Pointer(pointer.place, "unsigned char", pointer.const, pointer.offset))


def _bytes(base: str, *, const: bool) -> str:
    return f"(({'const ' if const else ''}unsigned char *){base})"


def _typed(base: str, offset: Size, ctype: str, *, const: bool, always: bool = False) -> str:
    """A pointer of a type to a byte behind a base."""
    text = base if offset == 0 and not always else f"({base} + {offset})"
    word = "const " if const else ""
    return f"({word}{ctype} *)({word}void *){text}" if ctype != "void" else text


def _stepped(base: str, names: Sequence[str], strides: Sequence[Size]) -> str:
    terms = [f"{n} * {s}" if isinstance(s, int) else f"{n} * ({s})" for n, s in zip(names, strides, strict=False)]
    return f"{base} + {' + '.join(terms)}"


def _test(test: Test) -> str:
    return f"{test.value} {test.relation} {test.bound}"


def _waits(statement: Statement) -> bool:
    """Whether something is awaited."""
    match statement:
        case AwaitTransfers() | AwaitEngine():
            return True
        case If(body=body) | For(body=body):
            return any(map(_waits, body))
        case _:
            return False
