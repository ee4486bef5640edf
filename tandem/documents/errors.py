"""What can be wrong with a file."""

from __future__ import annotations

from tandem.core.errors import TandemError, UnprocessableError


class UnsupportedDocumentError(TandemError):
    """The file's format is none of ours; the message names those there are."""

    status = 415
    code = "unsupported_type"


class BrokenDocumentError(UnprocessableError):
    """The file is damaged, is not what its name says, or tries something that no honest file does."""

    code = "broken_document"


class EncryptedDocumentError(UnprocessableError):
    """The file can be read with a password or a licence only."""

    code = "encrypted_document"
