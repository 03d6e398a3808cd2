"""Mutants of a source tree: small faults, each a single edit of one line, drawn with a seed and located in other trees.

Python is edited by its syntax tree; C++, C and kernels by tokens outside comments, strings and directives.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

NATIVE = (".cpp", ".hpp", ".c", ".h", ".cl")

_SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*"},
    **{"is": "is not", "is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and"},
}
_COMPARISON = re.compile(r"is\s+not\b|not\s+in\b|is\b|in\b|<=|>=|==|!=|<|>")
_ARITHMETIC = re.compile(r"\*\*|//|[+\-*/]")
_LOGICAL = re.compile(r"\b(?:and|or)\b")
_UNTESTABLE_FLAGS = {"slots", "frozen", "kw_only", "strict"}  # tests can rarely detect these
_DRAWS_PER_LINE = 1
_CONTEXT = 6  # lines on each side, to distinguish identical lines


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit. `column` counts characters from 0; `first` and `last` are the lines of its statement; `around` holds
    the lines above and below it, nearest first."""

    file: str
    line: int
    column: int
    operator: str
    old: str
    new: str
    before: str
    around: tuple[tuple[str, ...], tuple[str, ...]]
    first: int
    last: int

    @property
    def is_native(self) -> bool:
        """Whether it is in a program or kernel."""
        return self.file.endswith(NATIVE)

    @property
    def after(self) -> str:
        """The line with the fault."""
        return self.before[: self.column] + self.new + self.before[self.column + len(self.old) :]

    def applied(self, text: str) -> str:
        """The file with the fault."""
        lines = text.split("\n")
        if lines[self.line - 1] != self.before:
            raise ValueError(f"{self.file}:{self.line} has changed")
        lines[self.line - 1] = self.after
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """As written to JSON."""
        return {**asdict(self), "after": self.after}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Mutant:
        """The mutant that `document()` described."""
        read = {name: document[name] for name in cls.__dataclass_fields__}
        return cls(**{**read, "around": tuple(map(tuple, document["around"]))})


def draw(
    texts: Mapping[str, str], seed: int, count: int, native_share: float, is_sound: Callable[[Mutant], bool]
) -> tuple[list[Mutant], list[Mutant]]:
    """`count` mutants of the files, at most one per line, and those drawn that do not compile (`is_sound` is false).

    Operators are drawn in turn, so that the many constants do not crowd out the few conditions.
    """
    native_count = round(count * native_share)
    drawn: list[Mutant] = []
    unsound: list[Mutant] = []
    for is_native, wanted in ((False, count - native_count), (True, native_count)):
        sites = [
            site
            for file in sorted(texts)
            if file.endswith(NATIVE) == is_native
            for site in (native_sites if is_native else python_sites)(file, texts[file])
        ]
        taken = 0
        for mutant in _in_turns(sites, random.Random(f"{seed} {is_native}")):
            if taken == wanted:
                break
            if not is_native and not _is_other_python(mutant, texts[mutant.file]):
                continue
            if is_sound(mutant):
                drawn.append(mutant)
                taken += 1
            else:
                unsound.append(mutant)
    return drawn, unsound


def _in_turns(sites: Iterable[Mutant], chance: random.Random) -> Iterator[Mutant]:
    piles: dict[str, list[Mutant]] = {}
    for site in sites:
        piles.setdefault(site.operator, []).append(site)
    for pile in piles.values():
        chance.shuffle(pile)
    seen: Counter[tuple[str, int]] = Counter()
    while piles:
        names = sorted(piles)
        chance.shuffle(names)
        for name in names:
            mutant = next((one for one in _popped(piles[name]) if seen[one.file, one.line] < _DRAWS_PER_LINE), None)
            if mutant is None:
                del piles[name]
            else:
                seen[mutant.file, mutant.line] += 1
                yield mutant


def _popped(pile: list[Mutant]) -> Iterator[Mutant]:
    while pile:
        yield pile.pop()


def _is_other_python(mutant: Mutant, text: str) -> bool:
    """Whether the result can be parsed and differs in meaning."""
    try:
        return ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


def find_again(mutant: Mutant, texts: Mapping[str, str]) -> Mutant | None:
    """Locate the mutant in another tree by the text of its line and of the lines around it; None if ambiguous.

    A line that moved to another file is found there if one place matches better than all others.
    """
    suffixes = NATIVE if mutant.is_native else (".py",)
    places = [place for file in sorted(texts) if file.endswith(suffixes) for place in _lines_like(mutant, file, texts)]
    kept = {place: _matching_lines(place, mutant) for place in places}
    own = [place for place in places if place.file == mutant.file]
    others = [place for place in places if place.file != mutant.file]
    most = max((kept[place] for place in others), default=0)
    best_others = [place for place in others if kept[place] == most]
    best = max(own, key=lambda place: (kept[place], -abs(place.line - mutant.line)), default=None)
    if best is not None and kept[best] >= min(most, _CONTEXT):
        return best if kept[best] or len(own) == 1 else None
    return best_others[0] if len(best_others) == 1 else None


def _matching_lines(one: Mutant, other: Mutant) -> int:
    """The number of equal lines, counted outward from the mutant."""
    sides = (zip(a, b, strict=False) for a, b in zip(one.around, other.around, strict=True))
    return sum(len(list(takewhile(lambda pair: pair[0] == pair[1], side))) for side in sides)


def _lines_like(mutant: Mutant, file: str, texts: Mapping[str, str]) -> Iterator[Mutant]:
    wanted = mutant.before.strip()
    if wanted not in texts[file]:
        return
    lines = texts[file].split("\n")
    for number, line in enumerate(lines, start=1):
        if line.strip() == wanted:
            by = number - mutant.line
            yield replace(
                mutant,
                file=file,
                line=number,
                column=mutant.column + _indentation(line) - _indentation(mutant.before),
                before=line,
                around=_around(lines, number),
                first=mutant.first + by,
                last=mutant.last + by,
            )


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _around(lines: Sequence[str], line: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    above, below = lines[max(0, line - 1 - _CONTEXT) : line - 1], lines[line : line + _CONTEXT]
    return tuple(text.strip() for text in reversed(above)), tuple(text.strip() for text in below)


def python_sites(file: str, text: str) -> list[Mutant]:
    """Every mutant of a Python file, in source order."""
    finder = _PythonSites(file, text)
    finder.visit(ast.parse(text))
    return sorted(finder.found, key=lambda one: (one.line, one.column, one.operator))


class _PythonSites(ast.NodeVisitor):
    """Visits a file, skipping everything without behaviour: annotations, docstrings, decorators, error messages."""

    def __init__(self, file: str, text: str) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._lines = text.split("\n")
        self._statement = (1, 1)
        self._functions = 0

    def _column(self, line: int, offset: int) -> int:
        return len(self._lines[line - 1].encode()[:offset].decode())

    def _add(self, operator: str, line: int, start: int, end: int, new: str) -> None:
        """`start` and `end` are columns in characters."""
        before, around = self._lines[line - 1], _around(self._lines, line)
        old = before[start:end]
        self.found.append(Mutant(self._file, line, start, operator, old, new, before, around, *self._statement))

    def _edit(self, operator: str, node: ast.expr | ast.stmt, new: Callable[[str], str]) -> None:
        """Add a mutant that replaces a whole node, if the node is on one line."""
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            return
        start, end = self._column(node.lineno, node.col_offset), self._column(node.lineno, node.end_col_offset)
        self._add(operator, node.lineno, start, end, new(self._lines[node.lineno - 1][start:end]))

    def _swap(self, operator: str, left: ast.expr, right: ast.expr, token: re.Pattern[str]) -> None:
        """Add a mutant of the operator between two operands on one line."""
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        line = right.lineno
        start, end = self._column(line, left.end_col_offset), self._column(line, right.col_offset)
        match = token.search(self._lines[line - 1][start:end])
        new = _SWAPS.get(" ".join(match[0].split())) if match else None
        if match and new:
            self._add(operator, line, start + match.start(), start + match.end(), new)

    def visit(self, node: ast.AST) -> None:
        """Visit a node and keep track of the lines of its statement (for a compound statement, its header)."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer, body = self._statement, getattr(node, "body", None)
        end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
        self._statement = (node.lineno, max(node.lineno, end))
        super().visit(node)
        self._statement = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit only defaults and body."""
        self._functions += 1
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)
        self._functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit only the body."""
        for part in node.body:
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit only the value."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Skip `__all__`."""
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Skip: error messages are not tested."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip: Python 3.11 has no positions inside f-strings."""

    def visit_keyword(self, node: ast.keyword) -> None:
        """Skip flags that tests cannot detect."""
        if node.arg not in _UNTESTABLE_FLAGS:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Drop a call whose result is not used."""
        if isinstance(node.value, ast.Call) and self._functions:
            self._edit("drop call", node, lambda _: "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Return None instead of the value."""
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._edit("return None", node, lambda _: "return None")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Negate the condition, unless another operator has the same effect."""
        named = ast.unparse(node.test)
        if "TYPE_CHECKING" in named or "__name__" in named:
            return
        match node.test:
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                is_same = True
            case test:
                is_same = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if self._functions and not is_same:
            self._edit("negate if", node.test, lambda text: f"not ({text})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Use another comparison, or compare with an empty string."""
        operands = [node.left, *node.comparators]
        for left, right in pairwise(operands):
            if self._functions:
                self._swap("comparison", left, right, _COMPARISON)
        for operand in operands:
            self._empty(operand)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Use an empty key."""
        for key in node.keys:
            self._empty(key)
        self.generic_visit(node)

    def _empty(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            self._edit("empty string", node, lambda _: '""')

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Swap an arithmetic operator, but not for strings, lists and paths, which would only fail."""
        no_number = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
        sides = (node.left, node.right)
        is_number = not any(isinstance(side, no_number) for side in sides) and not any(
            isinstance(side, ast.Constant) and isinstance(side.value, str | bytes) for side in sides
        )
        if self._functions and is_number and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            self._swap("arithmetic", node.left, node.right, _ARITHMETIC)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap `and` and `or`."""
        for left, right in pairwise(node.values):
            if self._functions:
                self._swap("and/or", left, right, _LOGICAL)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop `not`."""
        if isinstance(node.op, ast.Not) and self._functions:
            self._edit("drop not", node, lambda text: re.sub(r"^not\s*", "", text))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number, or invert a boolean."""
        value = node.value
        if isinstance(value, bool):
            self._edit("boolean", node, lambda _: str(not value))
        elif isinstance(value, int):
            self._edit("integer", node, lambda _: str(value + 1))
        elif isinstance(value, float):
            self._edit("float", node, lambda _: repr(2 * value or 1.0))


_HIDDEN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*"
    | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_NATIVE_OPERATORS: Sequence[tuple[str, re.Pattern[str], Callable[[str], str]]] = (
    ("comparison", re.compile(r"(?<= )(?:<|>|==)(?= )"), lambda text: _SWAPS[text]),
    ("arithmetic", re.compile(r"(?<=[\w)\]] )[+*](?= [\w(])"), lambda text: _SWAPS[text]),
    ("and/or", re.compile(r"(?<= )&&(?= )"), lambda _: "||"),
    ("boolean", re.compile(r"\b(?:true|false)\b"), lambda text: "false" if text == "true" else "true"),
    ("integer", re.compile(r"(?<![\w.'])\d+(?![\w.'])"), lambda text: str(int(text) + 1)),
)
_NO_STATEMENT = re.compile(r"\s*(?:template|using|static_assert|namespace|case|enum|requires|concept)\b")
_STATEMENT = re.compile(r"[;{]|^\s*(?:return|if|for|while|else)\b")


def native_sites(file: str, text: str) -> list[Mutant]:
    """Every mutant of a program or kernel, in source order."""
    lines = text.split("\n")
    shown = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text).split("\n")
    return [
        Mutant(
            file,
            number,
            match.start(),
            operator,
            match[0],
            new(match[0]),
            lines[number - 1],
            _around(lines, number),
            number,
            number,
        )
        for number, line in enumerate(shown, start=1)
        if not _NO_STATEMENT.match(line)
        for operator, token, new in _NATIVE_OPERATORS
        if operator != "integer" or _STATEMENT.search(line)
        for match in token.finditer(line)
    ]
