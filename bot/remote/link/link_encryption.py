"""Encrypts the link between machines. Both sides prove with TLS that they have the cluster's token; it is never sent.

Each side has a key that is made of the token, and a certificate for it that every machine with the token makes alike,
to the byte. So TLS itself compares what the other side shows with what it must be, in both directions, before anything
is said: nobody without the token can be one end, or sit in between. Nothing needs to be set up, copied besides the
token, or renewed. What was recorded stays unreadable if the token is lost later: TLS 1.3 makes new keys for each
connection.

Why not a pre-shared key of TLS, which is meant for this: Python has it from 3.13 on.
"""

from __future__ import annotations

import datetime
import secrets
import ssl
import tempfile
from enum import StrEnum
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bot.errors import SetupError
from bot.texts.text import Text

# A certificate shows whether a guess of the token is right, so the token must be one that nobody guesses: the one that
# is made has 64 characters, 256 bits.
LEAST_TOKEN_CHARS = 32
# A machine whose clock is wrong has its rooms too. RFC 5280, 4.1.2.5: the end for "no well-defined expiration".
_FROM = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)

SHORT_TOKEN = Text(
    "The cluster's token has fewer than {least} characters, so it could be guessed. Delete data/cluster/token, start "
    "the bot again, and copy the new one to every machine."
)


class _Side(StrEnum):
    """Each side has a key of its own, so what one side says cannot be sent back to it as the other's."""

    GATEWAY = "gateway"
    ROOM = "room"


def gateway_encryption(token: str) -> ssl.SSLContext:
    """Return what the gateway process listens with: it lets in who has the token. Raises `SetupError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A session that is resumed would not show its certificate again.
    context.num_tickets = 0
    return _between(context, token, _Side.GATEWAY, _Side.ROOM)


def room_encryption(token: str) -> ssl.SSLContext:
    """Return what a room's process connects with: it speaks only to who has the token. Raises `SetupError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate is for whoever has the token, at any address.
    context.check_hostname = False
    return _between(context, token, _Side.ROOM, _Side.GATEWAY)


def _between(context: ssl.SSLContext, token: str, ours: _Side, theirs: _Side) -> ssl.SSLContext:
    """Let a context show our side's certificate, and take the other side's alone."""
    if len(token) < LEAST_TOKEN_CHARS:
        raise SetupError(SHORT_TOKEN.fill(least=str(LEAST_TOKEN_CHARS)))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    key = _key(token, ours)
    # Python loads a key from a file alone. What is in it is encrypted, and it is gone at once.
    password = secrets.token_bytes(32)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "side.pem")
        file.write_bytes(pem + _certificate(key, ours).public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(file, password=password)
    expected = _certificate(_key(token, theirs), theirs)
    context.load_verify_locations(cadata=expected.public_bytes(serialization.Encoding.DER))
    return context


def _key(token: str, side: _Side) -> Ed25519PrivateKey:
    made = HKDF(hashes.SHA256(), length=32, salt=None, info=f"roomtone rooms link, {side}".encode())
    return Ed25519PrivateKey.from_private_bytes(made.derive(token.encode()))


def _certificate(key: Ed25519PrivateKey, side: _Side) -> x509.Certificate:
    """Return the certificate of a key: always the same bytes, because signatures of Ed25519 are."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"roomtone {side}")])
    usage = ExtendedKeyUsageOID.SERVER_AUTH if side is _Side.GATEWAY else ExtendedKeyUsageOID.CLIENT_AUTH
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .sign(key, None)
    )
