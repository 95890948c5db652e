"""Makes the self-signed certificate of the local voice gateway.

discord.py hard-codes `wss://{endpoint}/?v=8`, so the voice websocket needs TLS even on 127.0.0.1. The certificate is
its own authority. A client trusts it by its path (`ssl.create_default_context(cafile=...)`, `NODE_EXTRA_CA_CERTS`).
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=3650)
# The certificate is valid from yesterday, in case the clock is set back.
_BACKDATED = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The paths of the certificate (public, PEM) and its key (PEM, mode 0600)."""

    certificate_path: Path
    key_path: Path

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context of the server side."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate_path, self.key_path)
        return context


def write_certificate(directory: Path) -> Certificate:
    """Make a new certificate for this machine in an empty directory."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _self_signed(key)
    written = Certificate(directory / "certificate.pem", directory / "key.pem")
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    written.key_path.touch(mode=0o600)
    written.key_path.write_bytes(key_pem)
    written.certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return written


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roomtone local discord")])
    now = datetime.datetime.now(datetime.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    # Python 3.13 verifies strictly (VERIFY_X509_STRICT): the certificate needs key identifiers and key usages, and its
    # basic constraints must be marked critical.
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
