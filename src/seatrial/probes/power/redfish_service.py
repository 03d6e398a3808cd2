"""Where the objects of Redfish come from: a BMC over https, or a folder of recorded ones."""

from __future__ import annotations

import json
import ssl
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import ParseError
from seatrial.model.environment.site import RedfishAccess

if TYPE_CHECKING:
    import httpx

_LIMIT_S = 10.0
_MOST_BYTES = 4 << 20


class Service:
    """A BMC. Its certificate is checked; proxies of the environment are not used, and redirections not followed, since
    the password would go with them."""

    def __init__(self, access: RedfishAccess, password: str | None) -> None:
        """Raises OSError if the file of certificates cannot be read."""
        import httpx

        try:
            trusted = ssl.create_default_context()
            if access.ca_file is not None:
                trusted.load_verify_locations(access.ca_file)
        except ssl.SSLError as error:
            raise OSError(f"{access.ca_file}: {error}") from None
        user = (access.user, password or "") if access.user else None
        self._url = access.url.rstrip("/")
        self._client: httpx.Client = httpx.Client(auth=user, verify=trusted, timeout=_LIMIT_S, trust_env=False)
        self._ahead_s: float | None = None

    def get(self, uri: str) -> Any:
        """The object, None if there is none. Raises OSError if there is no answer, or none that is JSON."""
        import httpx

        try:
            with self._client.stream("GET", f"{self._url}{uri}") as answer:
                data, end_s = bytearray(), time.monotonic() + _LIMIT_S
                for piece in answer.iter_bytes():
                    data += piece
                    if time.monotonic() > end_s:
                        raise OSError(f"{uri} did not end in {_LIMIT_S:g} s")
                    if len(data) > _MOST_BYTES:
                        raise OSError(f"{uri} is longer than {_MOST_BYTES >> 20} MiB")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(f"{type(error).__name__}: {error}") from None
        if answer.status_code in (401, 403):
            raise OSError(f"HTTP {answer.status_code}: the user may not read {uri}")
        if answer.status_code == 404:
            return None
        if answer.status_code != 200:
            raise OSError(f"HTTP {answer.status_code} for {uri}")
        self._note_time(answer.headers.get("date"))
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise OSError(f"{uri} is not JSON") from None

    def now(self) -> float | None:
        """The service's own clock, in seconds since the epoch, to a second; None if it does not state it."""
        return None if self._ahead_s is None else time.time() + self._ahead_s

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _note_time(self, stated: str | None) -> None:
        try:
            self._ahead_s = parsedate_to_datetime(stated or "").timestamp() - time.time()
        except (ValueError, TypeError):
            return


class Recorded:
    """A folder with `redfish/v1/.../index.json`, as DMTF's mockup creator writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, uri: str) -> Any:
        """The object, None if there is none. Raises ParseError."""
        file = self._folder / uri.lstrip("/") / "index.json"
        try:
            if not file.resolve().is_relative_to(self._folder.resolve()) or not file.is_file():
                return None
            with file.open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
        except (OSError, ValueError, RuntimeError):
            return None
        try:
            if len(data) > _MOST_BYTES:
                raise ValueError
            return json.loads(data)
        except (ValueError, RecursionError):
            raise ParseError("redfish", 1, f"{file.name} of {uri} is not JSON") from None
