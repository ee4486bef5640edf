"""What the documentation says of a route, written beside the route."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tandem.web.faces import NATIVE, Face

ViewT = TypeVar("ViewT", bound=Callable[..., Any])

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
EVENTS, HTML, TEXT, ANY = "text/event-stream", "text/html", "text/plain", "*/*"
_ATTRIBUTE = "tandem_operation"


@dataclass(frozen=True)
class Operation:
    """What a route takes and gives.

    Attributes:
        answer: Type of a successful JSON answer; None when it is no JSON.
        body: Type of the request's body, a pydantic model or a union of them; None for a route without one.
        face: Whose clients it is for; decides what its errors look like.
        takes: Content types of the body.
        gives: Content types of a successful answer.
        query: Names of query parameters, with their JSON schemas.
        errors: Our statuses that it may answer with besides those that every route of its kind may.
        is_open: It needs no key, touches no model and cannot fail.
    """

    answer: Any = None
    body: Any = None
    face: Face = NATIVE
    takes: Sequence[str] = (JSON,)
    gives: Sequence[str] = (JSON,)
    query: Sequence[tuple[str, dict[str, Any]]] = ()
    errors: Sequence[int] = ()
    is_open: bool = False


def documented(operation: Operation) -> Callable[[ViewT], ViewT]:
    """Attach an operation to the function of a route; its docstring is the description."""

    def attach(view: ViewT) -> ViewT:
        setattr(view, _ATTRIBUTE, operation)
        return view

    return attach


def operation_of(view: Callable[..., Any]) -> Operation | None:
    """Return what was attached to the function of a route."""
    found: Operation | None = getattr(view, _ATTRIBUTE, None)
    return found
