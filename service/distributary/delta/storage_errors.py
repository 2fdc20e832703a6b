"""Errors of this machine and of object stores as Python and Arrow raise them: Arrow has one class for all errors of a
store, and for damaged data, too. Only their texts differ."""

from __future__ import annotations

import errno
import re

_OF_A_PATH = {
    errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP
}  # fmt: skip
"""The path is wrong, and a retry meets the same."""
_OF_A_STORE = re.compile(
    r"\b(?:AWS Error (?:\w+|\[code \d+\])|Azure Error: \[\w*|google::cloud::Status\(\w+|HDFS connection failed)"
)
"""The beginnings of such texts in Arrow (S3, Azure, Google, HDFS), with the code if there is one."""
_REFUSALS = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|SIGNATURE_DOES_NOT_MATCH|EXPIRED_TOKEN"
    r"|PERMISSION_DENIED|UNAUTHENTICATED|Authorization|AuthenticationFailed|InsufficientAccountPermissions"
)


def storage_error(error: OSError) -> str | None:
    """What failed, by the name or the code of the error, never with a user's value; None for an error that does not
    come from the storage or the operating system, such as damaged data, and for a wrong path."""
    if error.errno in _OF_A_PATH:
        return None
    if error.errno is not None or isinstance(error, TimeoutError):
        return f"{type(error).__name__} {errno.errorcode.get(error.errno or 0, '')}".rstrip()
    found = _OF_A_STORE.search(str(error))
    return found[0] if found else None


def is_refusal(error: OSError) -> bool:
    """Whether the storage does not allow the access."""
    what = storage_error(error)
    return isinstance(error, PermissionError) or (what is not None and _REFUSALS.search(what) is not None)
