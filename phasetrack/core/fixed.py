"""Immutable values, without code that is written at every start.

``dataclass`` writes and compiles six methods for each frozen class: for the forty of ``model`` that is 40 ms, a tenth
of what ``status`` on a small log takes (``tests/bench start``). Here all of them share the same six. ``fixed`` is
``dataclass`` for everything else: ``fields``, ``replace``, ``asdict`` and type checkers see one.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fixed", "fixed"]

_set = object.__setattr__
# The fields of a class in order, the defaults of those that have one, and what makes the others'.
_Form: TypeAlias = "tuple[dict[str, None], dict[str, object], list[tuple[str, Callable[[], object]]]]"
_FORMS: dict[type[Fixed], _Form] = {}


class Fixed:
    """Is made, compares, hashes and shows itself by its fields, and never changes."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        """Take the fields in order or by name."""
        names, defaults, makers = _FORMS.get(self.__class__) or _form(self.__class__)
        given = {**defaults, **dict(zip(names, values, strict=False)), **named}
        for name, make in makers:
            if name not in given:
                given[name] = make()
        if given.keys() != names.keys() or len(values) > len(names):
            wrong = sorted(given.keys() ^ names.keys()) or f"{len(values)} values for {len(names)} fields"
            raise TypeError(f"{self.__class__.__name__}: {wrong}")
        for name, value in given.items():
            _set(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and other.__class__ is self.__class__ and other._values() == self._values()

    def __hash__(self) -> int:
        return hash((self.__class__, self._values()))

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{self.__class__.__name__}({told})"

    def __reduce__(self) -> tuple[type[Fixed], tuple[object, ...]]:
        return self.__class__, self._values()


def _form(of: type[Fixed]) -> _Form:
    fields = dataclasses.fields(of)  # type: ignore[arg-type]  # every one is made by ``fixed``
    missing = dataclasses.MISSING
    defaults = {field.name: field.default for field in fields if field.default is not missing}
    makers = [(field.name, field.default_factory) for field in fields if field.default_factory is not missing]
    _FORMS[of] = dict.fromkeys(field.name for field in fields), defaults, makers
    return _FORMS[of]


if TYPE_CHECKING:
    from dataclasses import dataclass as fixed
else:

    def fixed(*, frozen: bool, slots: bool):  # noqa: ANN201 - to a type checker it is ``dataclass``
        """What ``dataclass`` does, but for the methods that ``Fixed`` has."""
        del frozen
        return partial(dataclasses.dataclass, slots=slots, init=False, eq=False, repr=False)
