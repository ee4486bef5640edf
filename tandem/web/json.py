"""JSON as the service writes it: Chinese as it is, not as escapes."""

from __future__ import annotations

from typing import Any

from flask.json.provider import DefaultJSONProvider


class JsonProvider(DefaultJSONProvider):
    """Writes UTF-8; what UTF-8 cannot hold (half of a surrogate pair that a client sent) as an escape."""

    ensure_ascii = False
    sort_keys = False

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Return a value as JSON."""
        text = super().dumps(obj, **kwargs)
        try:
            text.encode()
        except UnicodeEncodeError:
            return super().dumps(obj, **{**kwargs, "ensure_ascii": True})
        return text
