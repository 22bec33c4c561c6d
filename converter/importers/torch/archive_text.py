"""What the texts of an exported program may say.

PyTorch turns them into Python: symbolic sizes by ``eval``, guards by ``exec``, names of nodes and
attributes as the source of a function that it generates, operators and the types of arguments by
looking up (and importing) whatever they name. Here every string belongs to a small grammar of its
key, and a string of an unknown key is a plain word; what inference does not need is left out.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn

from phonebit.errors import ConversionError

WORD: Final = re.compile(r"[\w.:+-]*", re.ASCII)
IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*|", re.ASCII)
DOTTED: Final = re.compile(r"(?!__)\w+(\.(?!__)\w+)*|", re.ASCII)
"""Attributes of modules, e.g. "layer1.0.weight"; none that belongs to Python itself."""
RANGE: Final = re.compile(r"u\d{1,4}|(?!u\d)[\w+*/(), -]{1,1000}", re.ASCII)
"""Of a symbolic size; PyTorch counts up to the number of one that depends on values."""
MODULE_STACK: Final = re.compile(r"[ -~]*")
OPERATOR: Final = re.compile(
    r"torch\.ops\.aten\.(?!_unsafe_(?!view\b)|from_file\b|save\b|set_\b)\w+\.\w+"
    r"|torch\.ops\.higher_order\.(wrap_with_set_grad_enabled|wrap_with_autocast|cond)"
    r"|_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|abs|eq|ne|lt|le|gt|ge"
    r"|and_|or_|not_|lshift|rshift)"
    r"|math\.(ceil|floor|trunc)"
    r"|torch\.sym_(int|float|ite|max|min|not|sqrt|sum)",
    re.ASCII,
)
"""Those that only compute: ATen has some that open files, or that trust their indices."""
FUNCTIONS: Final = frozenset(
    {"Add", "Mul", "Max", "Min", "Mod", "Integer", "Rational", "Float", "Symbol", "And", "Or"}
    | {"Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "GreaterThan"}
    | {"LessThan", "StrictGreaterThan", "StrictLessThan", "FloorDiv", "ModularIndexing", "Where"}
    | {"PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv", "FloatTrueDiv", "ToFloat"}
    | {"IntTrueDiv", "TruncToFloat", "TruncToInt", "RoundToInt", "RoundDecimal", "Identity"}
)
"""Of SymPy and PyTorch, in symbolic sizes."""
POWERS: Final = frozenset({"Pow", "PowByNatural"})
SYMBOL: Final = re.compile(r"z?[su]f?\d{1,9}|true|false|True|False|oo|int_oo", re.ASCII)
FLOAT_TEXT: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?(e[+-]?[0-9]{1,3})?", re.ASCII)
OPERATIONS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
MAX_EXPRESSION: Final = 4000
LARGEST: Final = 2**63
MAX_ELEMENTS: Final = 2**28
"""Of a tensor that repeats what the file holds."""
TREE_TYPES: Final = (None, "builtins.tuple", "builtins.list", "builtins.dict")


def checked_program(content: Any) -> Any:
    """The JSON of an exported program, without what inference does not need.

    Raises:
        ConversionError: A text in it is more than the name, the operator or the size that its
            place is for; ``where`` is the place.
    """
    return _checked(content, "", "models/model.json")


def checked_payloads(content: Any, where: str, prefix: str) -> dict[str, Any]:
    """The JSON that says which bytes of the archive are which tensor.

    Raises:
        ConversionError: An entry is no plain tensor, or has far more elements than bytes.
    """
    config = _checked(content, "", where)
    try:
        for name, entry in config["config"].items():
            here = f"{where}: {name}"
            if entry["use_pickle"] or not re.fullmatch(prefix + r"\d+", entry["path_name"]):
                raise ConversionError("is an object that is no plain tensor", where=here)
            sizes = [size["as_int"] for size in entry["tensor_meta"]["sizes"]]
            if math.prod(sizes) > MAX_ELEMENTS:
                raise ConversionError("is too large", where=here, expected=MAX_ELEMENTS, got=sizes)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConversionError("does not describe tensors", where=where) from error
    return {"config": config["config"]}


def _checked(value: Any, key: str, where: str) -> Any:
    """A copy of a part of a JSON text; ``key`` is the nearest key around it."""
    if isinstance(value, dict):
        return {
            _text(name, RANGE if key == "range_constraints" else WORD, where): _field(
                item, name, f"{where}: {name}"
            )
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_checked(item, key, where) for item in value]
    if isinstance(value, str):
        return _KEYED[key](value, where) if key in _KEYED else _text(value, WORD, where)
    if isinstance(value, int) and abs(value) >= LARGEST:
        _refuse("has a number of more than 64 bits", where, str(value)[:40])
    return value


def _field(value: Any, key: str, where: str) -> Any:
    if key == "guards_code":
        return []
    if key == "treespec_namedtuple_fields":
        return {}
    if key == "metadata":
        return _metadata(value, where)
    return _checked(value, key, where)


def _metadata(value: Any, where: str) -> dict[str, str]:
    """Which module a node belongs to and which line made it: comments for people."""
    if not isinstance(value, dict):
        _refuse("has metadata of another kind", where, value)
    kept = {}
    if isinstance(stack := value.get("nn_module_stack"), str):
        kept["nn_module_stack"] = _text(stack, MODULE_STACK, where)
    if isinstance(trace := value.get("stack_trace"), str):
        lines = trace.split("\n")
        kept["stack_trace"] = "\n".join(re.sub(r"[^ -~]", " ", line) for line in lines)
    return kept


def _text(text: str, grammar: re.Pattern[str], where: str) -> str:
    if not grammar.fullmatch(text):
        _refuse("is more than a name", where, text)
    return text


def _operator(text: str, where: str) -> str:
    if not OPERATOR.fullmatch(text):
        _refuse("is no operator of a network", where, text)
    return text


def _plain(text: str, _: str) -> str:
    """An argument of an operator, e.g. the equation of einsum; PyTorch only ever quotes it."""
    return text


def _expression(text: str, where: str) -> str:
    problem = _problem_of(text)
    if problem is not None:
        _refuse(problem, where, text)
    return text


@lru_cache(maxsize=1024)
def _problem_of(text: str) -> str | None:
    """What in a symbolic size is more than arithmetic, if anything is."""
    if len(text) > MAX_EXPRESSION:
        return "is too long for a symbolic size"
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "is no symbolic size"
    return None if _is_size(tree, in_power=False) else "is no symbolic size, but code"


def _is_size(node: ast.expr, in_power: bool) -> bool:
    """Whether an expression is arithmetic on symbols and numbers; powers of powers are too much."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and abs(value) < LARGEST
        case ast.Name(id=name):
            return SYMBOL.fullmatch(name) is not None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _is_size(operand, in_power)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _is_power([left, right], in_power)
        case ast.BinOp(op=op, left=left, right=right) if isinstance(op, OPERATIONS):
            return _is_size(left, in_power) and _is_size(right, in_power)
        case ast.Compare(left=left, comparators=others):
            return all(_is_size(operand, in_power) for operand in (left, *others))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            flags = all(
                keyword.arg is not None
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, bool | int)
                for keyword in keywords
            )
            return flags and _is_call(name, args, in_power)
    return False


def _is_call(name: str, args: list[ast.expr], in_power: bool) -> bool:
    if name in POWERS:
        return _is_power(args, in_power)
    if name not in FUNCTIONS:
        return False
    match args:
        case [ast.Constant(value=str(text))]:
            grammar = {"Symbol": IDENTIFIER, "Float": FLOAT_TEXT}.get(name)
            return grammar is not None and grammar.fullmatch(text) is not None
    return all(_is_size(argument, in_power) for argument in args)


def _is_power(args: list[ast.expr], in_power: bool) -> bool:
    """Whether it is a power by a small number, so that no number grows out of bounds."""
    if len(args) != 2 or in_power or not _is_size(args[0], in_power=True):
        return False
    match args[1]:
        case (
            ast.Constant(value=int(exponent))
            | ast.Call(func=ast.Name(id="Integer"), args=[ast.Constant(value=int(exponent))])
        ):
            return exponent <= 16
    return False


def _tree(text: str, where: str) -> str:
    """How the arguments of a module nest: tuples, lists and dictionaries."""
    try:
        version, tree = json.loads(text)
        if version != 1 or not _is_tree(tree):
            raise ValueError(text)
    except (ValueError, TypeError, KeyError, RecursionError):
        _refuse("is more than tuples, lists and dictionaries", where, text)
    return text


def _is_tree(tree: dict[str, Any]) -> bool:
    kind, context = tree["type"], tree["context"]
    if set(tree) != {"type", "context", "children_spec"} or kind not in TREE_TYPES:
        return False
    keys = None if context is None else json.loads(context)
    plain = keys is None or (kind == "builtins.dict" and _are_words(keys))
    return plain and all(_is_tree(child) for child in tree["children_spec"])


def _are_words(keys: Any) -> bool:
    return isinstance(keys, list) and all(
        isinstance(key, int) or (isinstance(key, str) and WORD.fullmatch(key)) for key in keys
    )


def _refuse(problem: str, where: str, got: Any) -> NoReturn:
    shown = got if len(str(got)) <= 120 else f"{str(got)[:120]}..."
    raise ConversionError(
        f"{problem}; the file may be hostile, nothing in it was run", where=where, got=repr(shown)
    )


def _named(grammar: re.Pattern[str]) -> Callable[[str, str], str]:
    return lambda text, where: _text(text, grammar, where)


_KEYED: Final[dict[str, Callable[[str, str], str]]] = {
    "expr_str": _expression,
    "target": _operator,
    "as_operator": _operator,
    "in_spec": _tree,
    "out_spec": _tree,
    "as_string": _plain,
    "as_strings": _plain,
    **dict.fromkeys(("name", "as_name", "forward_arg_names"), _named(IDENTIFIER)),
    **dict.fromkeys(
        ("parameter_name", "buffer_name", "tensor_constant_name", "user_input_name", "fqn"),
        _named(DOTTED),
    ),
}
"""The grammar of the strings under a key, also in lists."""
