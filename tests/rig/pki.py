"""Certificates of a test bed: one CA, leaves, and the key that signs ServiceAccount tokens."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=30)
_BACKDATE = datetime.timedelta(minutes=5)  # clocks of containers and hosts differ a little


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files live in one folder."""

    def __init__(self, folder: Path, name: str = "test-bed-ca") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(_CA_USAGE, critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.files = Pair(folder / "ca.crt", folder / "ca.key")
        _write_certificate(self.files.certificate, certificate)
        write_key(self.files.key, self._key)

    def issue(
        self,
        file_name: str,
        common_name: str,
        groups: Sequence[str] = (),
        *,
        hosts: Sequence[str] = (),
    ) -> Pair:
        """Issue a leaf for a client (user and groups) and, given hosts or addresses, a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name, groups), self._name, key.public_key())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        # Python 3.13 and newer refuse a leaf that does not name its issuer's key.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        pair = Pair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        _write_certificate(pair.certificate, builder.sign(self._key, hashes.SHA256()))
        write_key(pair.key, key)
        return pair


def service_account_keys(folder: Path) -> Pair:
    """Make the key pair that signs ServiceAccount tokens (`certificate` is the public key)."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = Pair(folder / "sa.pub", folder / "sa.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pair.certificate.write_bytes(public)
    write_key(pair.key, key)
    return pair


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


_CA_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    return builder.not_valid_before(now - _BACKDATE).not_valid_after(now + _LIFETIME)


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
