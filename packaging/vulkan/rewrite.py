"""SPIR-V of clspv to a module: marks become specialisation constants, steps a list of calls."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER_WORDS = 5
PEOPLE = {3, 4, 5, 6, 8, 317, 330}  # instructions that drivers do not need: OpSource, OpName ...
OP_STRING, OP_IMPORT, OP_INSTRUCTION, OP_DECORATE = 7, 11, 12, 71
OP_TYPE_INT, OP_CONSTANT, OP_SPEC_CONSTANT = 21, 43, 50
OP_FUNCTION, OP_PARAMETER, OP_FUNCTION_END, OP_CALL, OP_LABEL, OP_RETURN_VALUE = (
    54,
    55,
    56,
    57,
    248,
    254,
)
OP_ACCESS_CHAIN, OP_EXTRACT, OP_MULTIPLY_EXTENDED = 65, 81, 151
SPEC_ID, BINDING = 1, 33
# Literals from this operand on (1: the first), of instructions that have some.
LITERALS = {21: 2, 22: 2, 43: 3, 50: 3, 61: 4, 62: 3, 79: 5, 81: 4, 82: 5, 246: 3, 247: 2, 250: 4}
SINGLE_LITERALS = {12: 4, 23: 3, 32: 2, 54: 3, 59: 3}
TYPES = range(19, 40)  # their result is the first operand, as OpLabel's
NO_RESULT = {OP_FUNCTION_END, 62, 63, 224, 225, 246, 247, 249, 250, 251, 252, 253, 254, 255}

Instruction = tuple[int, ...]  # its opcode, then its words


def instructions(binary: bytes) -> Iterator[Instruction]:
    """The instructions of a module."""
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    at = HEADER_WORDS
    while at < len(words):
        length = words[at] >> 16
        yield (words[at] & 0xFFFF, *words[at + 1 : at + length])
        at += length


def binary_of(header: bytes, parts: list[Instruction], bound: int) -> bytes:
    """The inverse; ``bound``: one more than the largest id."""
    words = list(struct.unpack(f"<{HEADER_WORDS}I", header[: 4 * HEADER_WORDS]))
    words[3] = bound
    for part in parts:
        words += [len(part) << 16 | part[0], *part[1:]]
    return struct.pack(f"<{len(words)}I", *words)


def result_at(part: Instruction) -> int:
    """The operand that is an instruction's result; 0: it has none."""
    if part[0] in NO_RESULT:
        return 0
    return 1 if part[0] in TYPES or part[0] in (OP_LABEL, OP_STRING, OP_IMPORT) else 2


def is_id(part: Instruction, at: int) -> bool:
    """Whether operand ``at`` is an id."""
    return SINGLE_LITERALS.get(part[0]) != at and at < LITERALS.get(part[0], len(part))


class Rewriter:
    """One module.

    Args:
        binary: what clspv made.
        first_mark: marks count from here: those of constants, then of steps, then that of lists.
        constants: how many.
        steps: how many.
    """

    def __init__(self, binary: bytes, first_mark: int, constants: int, steps: int) -> None:
        self.header = binary
        self.bound = struct.unpack_from("<I", binary, 12)[0]
        self.parts = [part for part in instructions(binary) if part[0] not in PEOPLE]
        self.uint = next(
            part[1] for part in self.parts if part[0] == OP_TYPE_INT and part[2:] == (32, 0)
        )
        self.constants, self.steps = constants, steps
        self.marks = {
            part[2]: part[3] - first_mark
            for part in self.parts
            if part[0] == OP_CONSTANT
            and part[1] == self.uint
            and first_mark <= part[3] <= first_mark + constants + steps
        }
        self.bindings = {
            part[1]: part[3] for part in self.parts if part[0] == OP_DECORATE and part[2] == BINDING
        }
        self.lists: list[int] = []  # functions that apply steps
        self.listed = 0  # calls in each

    def module(self) -> bytes:
        """The module."""
        self._replace_products()
        self._list_calls()
        return binary_of(self.header, self.parts, self.bound)

    def _new_id(self) -> int:
        self.bound += 1
        return int(self.bound) - 1

    def _replace_products(self) -> None:
        products = {
            part[2]: self.marks[operand]
            for part in self.parts
            if part[0] == OP_MULTIPLY_EXTENDED
            for operand in part[3:]
            if operand in self.marks
        }
        zero, ids = (
            self._new_id(),
            {number: self._new_id() for number in sorted(set(products.values()))},
        )
        open_ones = {number: made for number, made in ids.items() if number < self.constants}
        alias: dict[int, int] = {}
        for part in self.parts:
            if part[0] == OP_EXTRACT and part[3] in products:
                if part[4] != 1:
                    raise ValueError("clspv reads the lower half of a product with a mark")
                alias[part[2]] = open_ones.get(products[part[3]], zero)
        kept: list[Instruction] = []
        self.of_function: dict[int, set[int]] = {}  # marks in a function
        function = 0
        for part in self.parts:
            if part[0] == OP_FUNCTION:
                function = part[2]
            if part[0] == OP_MULTIPLY_EXTENDED and part[2] in products:
                self.of_function.setdefault(function, set()).add(products[part[2]])
            elif not (part[0] == OP_EXTRACT and part[3] in products):
                renamed = (
                    alias.get(word, word) if i and is_id(part, i) else word
                    for i, word in enumerate(part)
                )
                kept.append(tuple(renamed) if function else part)
        first = next(i for i, part in enumerate(kept) if part[0] == OP_FUNCTION)
        kept[first:first] = [
            (OP_CONSTANT, self.uint, zero, 0),
            *((OP_SPEC_CONSTANT, self.uint, made, 0) for made in open_ones.values()),
        ]
        types = next(i for i, part in enumerate(kept) if part[0] in TYPES)
        kept[types:types] = [(OP_DECORATE, made, SPEC_ID, n) for n, made in open_ones.items()]
        self.parts = kept

    def _list_calls(self) -> None:
        """Makes of a function with the mark of a list: one call of each step, in their order."""
        step_of = {
            function: mark - self.constants
            for function, marks in self.of_function.items()
            for mark in marks
            if self.constants <= mark < self.constants + self.steps
        }
        self.lists = [
            f for f, marks in self.of_function.items() if self.constants + self.steps in marks
        ]
        made: list[Instruction] = []
        body: list[Instruction] = []
        for part in self.parts:
            body.append(part)
            if part[0] == OP_FUNCTION_END or body[0][0] != OP_FUNCTION:
                made += (
                    self._as_list(body, step_of)
                    if body[0][0] == OP_FUNCTION and body[0][2] in self.lists
                    else body
                )
                body = []
        self.parts = made + body

    def _as_list(self, body: list[Instruction], step_of: dict[int, int]) -> list[Instruction]:
        parameters = [part for part in body if part[0] == OP_PARAMETER]
        value = next(part[2] for part in parameters if part[1] == body[0][1])
        known = {part[2] for part in parameters} | {
            part[result_at(part)] for part in self.declarations()
        }
        chains = {part[2]: part for part in body if part[0] == OP_ACCESS_CHAIN}
        calls: dict[tuple[int, ...], Instruction] = {}
        for part in body:
            if part[0] == OP_CALL and part[3] in step_of:
                buffers = [self.bindings[chains[word][3]] for word in part[4:] if word in chains]
                operands = (word if word in known or word in chains else value for word in part[4:])
                calls.setdefault(
                    (step_of[part[3]], *buffers), (*part[:2], self._new_id(), part[3], *operands)
                )
        self.listed = len(calls)
        listed = [calls[key] for key in sorted(calls)]
        used = {word for call in listed for word in call[4:]}
        return [
            body[0],
            *parameters,
            (OP_LABEL, self._new_id()),
            *(part for result, part in chains.items() if result in used),
            *listed,
            (OP_RETURN_VALUE, listed[-1][2]),
            body[-1],
        ]

    def declarations(self) -> list[Instruction]:
        """What comes before functions and has a result."""
        first = next(i for i, part in enumerate(self.parts) if part[0] == OP_FUNCTION)
        return [part for part in self.parts[:first] if part[0] in TYPES or 40 < part[0] < 60]
