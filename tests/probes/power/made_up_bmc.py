"""A made-up BMC: IPMI over the network with DCMI's power reading, and Redfish over https from a function."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme

USER, PASSWORD = "operator", "Oyster-Bank-77"


def free_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    with closing(socket.socket(socket.AF_INET, kind)) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def ipmi_bmc(watts: int | Path, average_W: int | None = None, is_active: bool = True) -> Iterator[int]:
    """The port of a BMC that reports this power, or that in a file."""
    port = free_port()
    words = [sys.executable, str(Path(__file__)), str(port), str(watts), str(average_W or 300), str(int(is_active))]
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield port
    finally:
        server.kill()
        server.communicate()


class Answers:
    """What the service was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []


@cache
def _signed() -> tuple[trustme.CA, trustme.LeafCert]:
    """Made once: keys take longer than most tests."""
    authority = trustme.CA()
    return authority, authority.issue_cert("localhost", "127.0.0.1")


@contextmanager
def redfish_bmc(get: Callable[[str], Any], folder: Path) -> Iterator[tuple[str, Path, Answers]]:
    """URL, file of the trusted certificate, and what was asked. `get`: URI -> object, None for 404."""
    (authority, certificate), answers = _signed(), Answers()
    certificates = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(certificates))
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer in two packets waits 40 ms for the first one's acknowledgement

        def do_GET(self) -> None:
            answers.asked.append(self.path)
            found = get(self.path)
            status = 401 if self.headers["Authorization"] != expected else 404 if found is None else 200
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", certificates, answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def password_file(folder: Path) -> Path:
    file = folder / "password"
    file.touch(mode=0o600)
    file.write_text(f"{PASSWORD}\n")
    return file


def _serve(port: int, given: str, average_W: int, is_active: bool) -> None:
    from pyghmi.ipmi.bmc import Bmc

    class Dcmi(Bmc):  # type: ignore[misc]
        def handle_raw_request(self, request: Any, session: Any) -> Any:
            if request["netfn"] != 0x2C:
                return super().handle_raw_request(request, session)
            if request["command"] == 2:  # Get Power Reading, DCMI 1.5, table 6-16
                watts = int(given if given.isdecimal() else Path(given).read_text())
                values = struct.pack("<HHHHIIB", watts, 90, 500, average_W, int(time.time()), 1000, is_active << 6)
                return session.send_ipmi_response(data=[0xDC, *values])
            return session.send_ipmi_response(data=[0xDC, 1, 5, 2, 0, 1, 0])

    bmc = Dcmi({USER: PASSWORD}, port=port, address="127.0.0.1")
    print("ready", flush=True)
    bmc.listen()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
