"""Errors that carry their HTTP status, their code and a sentence that says what to do."""

from __future__ import annotations


class TandemError(Exception):
    """Something a caller can be told about.

    The message is shown to the caller as it is: it says what is wrong and what to do, and never holds user text.
    """

    status = 500
    code = "internal"
    retry_after_s: float | None = None


class InvalidRequestError(TandemError):
    """The request is malformed."""

    status = 400
    code = "invalid_request"


class TooLargeError(TandemError):
    """The request is over a limit; the message names the limit."""

    status = 413
    code = "too_large"


class UnprocessableError(TandemError):
    """The request is well-formed but impossible here: an unknown language, a task without a head."""

    status = 422
    code = "unprocessable"


class OverloadedError(TandemError):
    """The waiting room is full; nothing was computed."""

    status = 429
    code = "overloaded"
    retry_after_s = 1.0


class NotReadyError(TandemError):
    """The models are still loading, or the process is draining."""

    status = 503
    code = "not_ready"
    retry_after_s = 2.0


class DeadlineError(TandemError):
    """The request's time passed before its result was there."""

    status = 504
    code = "deadline"


class CancelledError(TandemError):
    """The item's last waiter has gone; nobody reads this error."""

    status = 499
    code = "cancelled"


class EngineError(TandemError):
    """The engine could not compute an item."""

    status = 500
    code = "engine"


class NonFiniteError(EngineError):
    """The model gave NaN or infinity, in float32 too."""

    code = "non_finite"


class ModelError(TandemError):
    """A model directory, checkpoint or tokenizer is missing, broken or of another shape; the message names the file."""

    code = "model"


class SettingsError(TandemError):
    """A setting has an impossible value; the message names the setting and the value. Stops the start."""

    code = "settings"
