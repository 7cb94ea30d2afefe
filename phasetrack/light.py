"""Parameters that cost nothing where nothing is to be done.

For every parameter, given or not, typer builds an adapter that turns its text into a value, and imports pydantic for
the first of them: 100 ms of the 300 that ``status`` on a small log took (``tests/bench start``). What was not given,
and text that stays text, needs none. All else goes typer's way.
"""

from __future__ import annotations

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
        self._is_text = not self._is_many and getattr(described, "annotation", None) is str

    def __call__(self, ctx: Any, value: Any) -> Any:
        parameter = self._parameter
        if value is None and not parameter.required:
            value = () if self._is_many else None
        elif not (self._is_text and isinstance(value, str)):
            return self._process(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)
