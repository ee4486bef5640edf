"""Who may ask: the API key of a request, wherever its client puts it."""

from __future__ import annotations

from typing import Any

from flask import Request, g
from werkzeug.exceptions import UnsupportedMediaType

from tandem.core.errors import InvalidRequestError, NotReadyError, SettingsError
from tandem.core.settings import Settings
from tandem.services.keys import KeyStore, MissingKeyError, OpenPermit, Permit
from tandem.web.bodies import read_body
from tandem.web.faces import LIBRETRANSLATE
from tandem.web.operations import FORM, MULTIPART

_SCHEMES = {"bearer", "deepl-auth-key"}
_NAMES = ("api_key", "auth_key", "token")  # LibreTranslate's, DeepL's of old, DeepLX's
_OPEN_BLUEPRINTS = {"ops", "pages", "docs", None}
_OPEN_ENDPOINTS = {
    "libretranslate.get_languages",
    "libretranslate.get_settings",
    "documents.get_file",  # its clients fetch `translatedFileUrl` without a key; the address is 128 random bits
}


class Gate:
    """Lets requests in.

    Args:
        settings: Say whether keys are required, and where they are kept.

    Raises:
        SettingsError: The database of keys cannot be opened.
    """

    def __init__(self, settings: Settings) -> None:
        """Open the store, where keys are required."""
        self._store: KeyStore | None = None
        if settings.keys_required:
            try:
                self._store = KeyStore(settings.keys_db)
            except NotReadyError as error:
                raise SettingsError(f"KEYS_DB={str(settings.keys_db)!r}: {error}") from error

    def admit(self, request: Request) -> Permit:
        """Return what a request may do.

        Raises:
            MissingKeyError: It has no key.
            WrongKeyError: Its key is not known, or was revoked.
            RateError: Its key's requests of this minute are used up.
            NotReadyError: The database cannot be used.
        """
        if self._store is None or _is_open(request):
            return OpenPermit()
        key = _find_key(request)
        if not key:
            raise MissingKeyError(
                "An API key is required here: send it as `Authorization: Bearer …`, `Authorization: DeepL-Auth-Key …` "
                "or as `api_key` in the body. The one who runs this service makes keys with `tandem keys add`."
            )
        return self._store.admit(key)


def _is_open(request: Request) -> bool:
    is_open = request.blueprint in _OPEN_BLUEPRINTS or request.endpoint in _OPEN_ENDPOINTS
    return is_open or request.method == "OPTIONS"


def _find_key(request: Request) -> str:
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    if scheme.lower() in _SCHEMES and key.strip():
        return key.strip()
    in_query = next((request.args[name] for name in _NAMES if request.args.get(name)), "")
    return in_query or _find_key_in_body(request)


def _find_key_in_body(request: Request) -> str:
    fields = _peek(request)
    if request.path == "/translate" and "q" in fields:
        g.face = LIBRETRANSLATE
    found = next((fields[name] for name in _NAMES if fields.get(name)), "")
    return found if isinstance(found, str) else ""


def _peek(request: Request) -> dict[str, Any]:
    """Return the fields of a body that has some; a file is not read into memory for it."""
    if request.mimetype == MULTIPART:
        return request.form.to_dict()
    if not (request.is_json or request.mimetype in (FORM, "")):
        return {}
    try:
        return read_body(request)
    except (InvalidRequestError, UnsupportedMediaType):
        return {}  # the route says what is wrong with it, to whoever has a key
