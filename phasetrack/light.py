"""Parameters that cost nothing where nothing is to be done.

For every parameter, given or not, typer builds an adapter that turns its text into a value, and imports pydantic for
the first of them: 100 ms of the 300 that ``status`` on a small log took (``tests/bench start``). What was not given,
text that stays text, and a choice in its own spelling need none. All else goes typer's way.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def lighten(parameters: Iterable[Any]) -> None:
    """Let typer's parameters take the short way where there is one; calling it twice is the same as once."""
    for parameter in parameters:
        if "process_value" not in vars(parameter) and hasattr(parameter, "process_value"):
            parameter.process_value = _Light(parameter)


class _Light:
    """What stands for a parameter's ``process_value``."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter
        self._process = parameter.process_value
        self._is_many = getattr(parameter, "multiple", False) or parameter.nargs == -1
        described = getattr(parameter, "type_descriptor", None)  # an older typer has none
        kind: Any = None if self._is_many else getattr(described, "annotation", None)
        self._is_text = kind is str
        chosen = isinstance(kind, type) and issubclass(kind, StrEnum)
        self._choices = {str(choice): choice for choice in kind} if chosen else {}

    def __call__(self, ctx: Any, value: Any) -> Any:
        parameter = self._parameter
        if value is None and not parameter.required:
            value = () if self._is_many else None
        elif isinstance(value, str) and value in self._choices:
            value = self._choices[value]
        elif not (self._is_text and isinstance(value, str)):
            return self._process(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)
