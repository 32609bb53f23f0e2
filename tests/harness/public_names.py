"""Public registries by their own names, over TLS: a proxy that asks doubles on loopback in their
place, and the authority that has signed its certificate.

https://www.rfc-editor.org/rfc/rfc9110#name-connect
"""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from harness.http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

# What each hop says for itself.
_OF_A_HOP = frozenset({"connection", "content-length", "date", "host", "server"})


@contextlib.contextmanager
def answering(doubles: Mapping[str, str], directory: Path) -> Iterator[dict[str, str]]:
    """The URL of a double by the name of a host; yields the environment in which they are asked.
    Certificates lie in `directory`.
    """
    context = _certify(doubles, directory)
    with serving(_Proxy, checked=True, doubles=doubles, context=context) as origin:
        authority = str(directory / "authority.pem")
        yield {"HTTPS_PROXY": origin, "NO_PROXY": "127.0.0.1", "SSL_CERT_FILE": authority}


class _Proxy(Handler):
    doubles: Mapping[str, str]
    context: ssl.SSLContext
    host = ""

    def do_CONNECT(self) -> None:
        self.host = self.path.rpartition(":")[0]
        self.send_response(200)
        self.end_headers()
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)

    def do_GET(self) -> None:
        if (received := self.received()) is None:
            return
        headers, body = received
        double = urlsplit(self.doubles[self.host])
        asked = HTTPConnection(double.netloc)
        with contextlib.closing(asked):
            sent = {name: value for name, value in headers.items() if name not in _OF_A_HOP}
            asked.request(self.command, f"{double.path}{self.path}", body, sent)
            answer = asked.getresponse()
            content = answer.read()
        own = [each for each in answer.getheaders() if each[0].lower() not in _OF_A_HOP]
        self.send(answer.status, own, content)

    do_POST = do_PUT = do_DELETE = do_GET

    def finish(self) -> None:
        super().finish()
        self.connection.close()


def _certify(hosts: Collection[str], directory: Path) -> ssl.SSLContext:
    """A certificate for `hosts`; that of the authority is written as authority.pem."""
    directory.mkdir()
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
    now = datetime.now(UTC)

    def begin(of: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
        return (
            x509.CertificateBuilder()
            .issuer_name(name)
            .public_key(of.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(of.public_key()), False)
            .add_extension(issuer, False)
        )

    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    usage |= dict.fromkeys(("encipher_only", "decipher_only"), False)
    signs = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage)
    authority = (
        begin(authority_key)
        .subject_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .add_extension(signs, True)
        .sign(authority_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    leaf = (
        begin(key)
        .subject_name(x509.Name([]))
        .add_extension(names, True)
        .sign(authority_key, hashes.SHA256())
    )
    (directory / "authority.pem").write_bytes(authority.public_bytes(Encoding.PEM))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "own.pem").write_bytes(leaf.public_bytes(Encoding.PEM) + key.private_bytes(*form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "own.pem")
    return context
