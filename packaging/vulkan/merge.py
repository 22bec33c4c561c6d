"""Modules to one, which has a declaration or a function once, however many kernels use it."""

from __future__ import annotations

import struct

from rewrite import (
    BINDING,
    HEADER_WORDS,
    OP_CALL,
    OP_CONSTANT,
    OP_DECORATE,
    OP_FUNCTION,
    OP_IMPORT,
    OP_INSTRUCTION,
    OP_STRING,
    OP_TYPE_INT,
    TYPES,
    Instruction,
    instructions,
    is_id,
    result_at,
)

OP_NAME, OP_EXTENSION, OP_MEMORY_MODEL, OP_ENTRY, OP_MODE, OP_CAPABILITY = 5, 10, 14, 15, 16, 17
OP_MEMBER_DECORATE, OP_VARIABLE = 72, 59
WORKGROUP = 4
KERNEL, BUFFER = 1, 3  # of reflection
FIRST_ID = 256  # literals are smaller: what looks for ids does not take them for some


def with_small_words(binary: bytes) -> bytes:
    """The same with ids in functions as distances: ModuleLibrary::read has the inverse.

    A function's ids are given in the order in which results stand, so that most are near the next
    one. Smaller ones, of declarations and other functions, stay.
    """
    words = list(struct.unpack(f"<{len(binary) // 4}I", binary))
    at, first, following = HEADER_WORDS, 0, 0
    while at < len(words):
        length = words[at] >> 16
        is_first = words[at] & 0xFFFF == OP_FUNCTION  # its result stays
        if is_first:
            first = words[at + 2]
            following = first + 1
        for i in range(at + 1, at + length if following else 0):
            if not first <= words[i] < 1 << 31 or (is_first and i == at + 2):
                continue
            distance = following - words[i]
            following += distance == 0
            words[i] = first + (distance * 2 if distance >= 0 else -2 * distance - 1)
        at += length
    return struct.pack(f"<{len(words)}I", *words)


def with_common_bindings(binary: bytes, sink_buffers: int) -> list[Instruction]:
    """Instructions with the sink's buffers at bindings from 0 on.

    What uses them is the same in all kernels then.

    Args:
        binary: the module.
        sink_buffers: how many of the kernel's last arguments they are.
    """
    parts = list(instructions(binary))
    bound = struct.unpack_from("<I", binary, 12)[0]
    numbers = {part[2]: part[3] for part in parts if part[0] == OP_CONSTANT}
    uint = next(part[1] for part in parts if part[0] == OP_TYPE_INT and part[2:] == (32, 0))
    about = [
        part
        for part in parts
        if part[0] == OP_INSTRUCTION and part[4] in (KERNEL, BUFFER) and len(part) > 8
    ]
    (total,) = (numbers[part[7]] for part in about if part[4] == KERNEL)
    places: dict[int, int] = {}
    for part in about:
        if part[4] == BUFFER:
            from_sink = numbers[part[6]] - (total - sink_buffers)
            places[numbers[part[8]]] = (
                from_sink if from_sink >= 0 else sink_buffers + numbers[part[6]]
            )
    ids = {place: bound + i for i, place in enumerate(places.values())}
    made: list[Instruction] = []
    for part in parts:
        if part[0] == OP_FUNCTION and ids:
            made += [(OP_CONSTANT, uint, made_id, place) for place, made_id in ids.items()]
            ids_used, ids = ids, {}
        if part[0] == OP_DECORATE and part[2] == BINDING:
            part = (*part[:3], places[part[3]])
        elif part in about and part[4] == BUFFER:
            part = (*part[:8], ids_used[places[numbers[part[8]]]], *part[9:])
        made.append(part)
    return made


class Merger:
    """All modules so far."""

    def __init__(self) -> None:
        self.bound = FIRST_ID
        self.known: dict[object, int | list[int]] = {}
        self.strings: list[Instruction] = []
        self.imports: list[Instruction] = []
        self.entries: list[Instruction] = []
        self.modes: list[Instruction] = []
        self.names: list[Instruction] = []
        self.decorations: list[Instruction] = []
        self.declarations: list[Instruction] = []
        self.functions: list[Instruction] = []
        self.about: list[Instruction] = []  # reflection
        self.capabilities: set[int] = set()
        self.extensions: set[Instruction] = set()

    def new_id(self) -> int:
        """An id that nothing has."""
        self.bound += 1
        return self.bound - 1

    def add(self, binary: bytes, key: str, sink_buffers: int, named: dict[int, str]) -> None:
        """Adds a module.

        Args:
            binary: the module.
            key: name of its entry point.
            sink_buffers: arguments of the sink.
            named: functions that get an OpName.
        """
        parts = with_common_bindings(binary, sink_buffers)
        first = next(i for i, part in enumerate(parts) if part[0] == OP_FUNCTION)
        marks: dict[int, list[Instruction]] = {}
        for part in parts[:first]:
            if part[0] in (OP_DECORATE, OP_MEMBER_DECORATE):
                marks.setdefault(part[1], []).append((part[0], *part[2:]))
        self.entry, self.entry_key = next(part[2] for part in parts if part[0] == OP_ENTRY), key
        ids: dict[int, int] = {}
        seen: dict[object, int] = {}
        capabilities = sorted(part[1] for part in parts if part[0] == OP_CAPABILITY)
        self.capabilities.update(capabilities)
        self.extensions.update(part for part in parts if part[0] == OP_EXTENSION)
        reflected = [
            part
            for part in parts[:first]
            if part[0] == OP_IMPORT and b"NonSemantic" in _bytes(part[2:])
        ]
        sets = {part[1] for part in reflected}
        for part in parts[:first]:
            if (
                part[0] in (OP_IMPORT, OP_STRING)
                or part[0] in TYPES
                or 40 < part[0] < 53
                or part[0] in (1, OP_VARIABLE)
            ):
                self._declare(part, marks, ids, seen)
        bodies: dict[int, list[Instruction]] = {}
        for part in parts[first:]:
            if part[0] == OP_FUNCTION:
                body = bodies.setdefault(part[2], [])
            if part[0] == OP_INSTRUCTION and part[3] in sets:
                continue
            body.append(part)
        for function in bodies:
            self._function(function, bodies, marks, ids)
        for function, name in named.items():
            instruction = (OP_NAME, ids[function], *_text(name))
            if instruction not in self.names:
                self.names.append(instruction)
        for part in parts:
            if part[0] == OP_ENTRY:
                rest = part[3:]
                end = next(i for i, word in enumerate(rest) if word >> 24 == 0) + 1
                name = self.entry_name = key + " :" + "".join(f" {c}" for c in capabilities)
                self.entries.append(
                    (OP_ENTRY, part[1], ids[part[2]], *_text(name), *(ids[i] for i in rest[end:]))
                )
            elif part[0] == OP_MODE:
                self.modes.append((OP_MODE, ids[part[1]], *part[2:]))
            elif part[0] == OP_INSTRUCTION and part[3] in sets:
                self._reflect(part, ids)

    def _reflect(self, part: Instruction, ids: dict[int, int]) -> None:
        number = part[4]
        if number == 2:  # names of arguments
            return
        length = {1: 7, 3: 9, 7: 9}.get(number, len(part))  # without those
        ids[part[2]] = self.new_id()
        if number == 1:  # its name is that of the entry point
            ids[part[6]] = self.new_id()
            self.strings.append((OP_STRING, ids[part[6]], *_text(self.entry_name)))
        self.about.append(
            (
                part[0],
                ids[part[1]],
                ids[part[2]],
                ids[part[3]],
                number,
                *(ids[i] for i in part[5:length]),
            )
        )

    def _declare(
        self,
        part: Instruction,
        marks: dict[int, list[Instruction]],
        ids: dict[int, int],
        seen: dict[object, int],
    ) -> None:
        at = result_at(part)
        is_text = part[0] in (OP_IMPORT, OP_STRING)
        words = tuple(
            0 if i == at else ids[word] if i and not is_text and is_id(part, i) else word
            for i, word in enumerate(part)
        )
        mine = marks.get(part[at], [])
        key: object = (words, tuple(sorted(mine)))
        if part[0] == OP_VARIABLE and part[3] == WORKGROUP:
            seen[key] = seen.get(key, 0) + 1
            key = (key, seen[key])
        if key not in self.known:
            made = self.known[key] = self.new_id()
            instruction = (*words[:at], made, *words[at + 1 :])
            {OP_IMPORT: self.imports, OP_STRING: self.strings}.get(
                part[0], self.declarations
            ).append(instruction)
            self.decorations += [(mark[0], made, *mark[1:]) for mark in mine]
        ids[part[at]] = self.known[key]  # type: ignore[assignment]

    def _function(
        self,
        function: int,
        bodies: dict[int, list[Instruction]],
        marks: dict[int, list[Instruction]],
        ids: dict[int, int],
    ) -> None:
        if function in ids:
            return
        body = bodies[function]
        for part in body:
            if part[0] == OP_CALL:
                self._function(part[3], bodies, marks, ids)
        local: dict[int, int] = {}
        for part in body:
            if at := result_at(part):
                local[part[at]] = len(local)

        def known(word: int) -> tuple[str, int]:
            return ("local", local[word]) if word in local else ("id", ids[word])

        key = tuple(
            (
                part[0],
                *(known(word) if is_id(part, i) else word for i, word in enumerate(part[1:], 1)),
            )
            for part in body
        )
        decorated = tuple(
            (i, tuple(sorted(marks[word]))) for word, i in local.items() if word in marks
        )
        name = (key, decorated, self.entry_key if function == self.entry else "")
        if name not in self.known:
            fresh = [self.new_id() for _ in local]
            self.known[name] = fresh
            for coded in key:
                words = [
                    fresh[w[1]]
                    if isinstance(w, tuple) and w[0] == "local"
                    else w[1]
                    if isinstance(w, tuple)
                    else w
                    for w in coded
                ]
                self.functions.append(tuple(words))
            for i, mine in decorated:
                self.decorations += [(mark[0], fresh[i], *mark[1:]) for mark in mine]
        fresh = self.known[name]  # type: ignore[assignment]
        ids.update({word: fresh[i] for word, i in local.items()})

    def binary(self, header: bytes) -> bytes:
        """The one module."""
        parts: list[Instruction] = [(OP_CAPABILITY, c) for c in sorted(self.capabilities)]
        parts += sorted(self.extensions)
        parts += [*self.imports, (OP_MEMORY_MODEL, 0, 1), *self.entries, *self.modes]
        parts += self.strings + self.names + self.decorations + self.declarations
        parts += self.functions + self.about
        words = list(struct.unpack(f"<{HEADER_WORDS}I", header[: 4 * HEADER_WORDS]))
        words[3] = self.bound
        for part in parts:
            words += [len(part) << 16 | part[0], *part[1:]]
        return struct.pack(f"<{len(words)}I", *words)


def _bytes(words: Instruction) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def _text(text: str) -> Instruction:
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)
