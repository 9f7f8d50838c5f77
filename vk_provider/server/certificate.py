"""A serving certificate of our own, for clusters whose API server does not verify kubelets.

The names are those a signed one would carry. Pure but for the key, which must be random.
Fed by ``tls``; feeds the TLS context.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
_SKEW = timedelta(minutes=5)
_RENEW_AT = 0.8


@dataclass(frozen=True, slots=True)
class ServingPair:
    """A certificate chain and its key, as PEM. The key is never shown."""

    chain: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"ServingPair(chain={len(self.chain)} bytes)"


def self_signed(node_name: str, names: Sequence[str], now: datetime) -> ServingPair:
    """A fresh ECDSA P-256 certificate for a node and its addresses (IPs and DNS names)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(node_name)
    public = key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
    )
    extensions: tuple[tuple[x509.ExtensionType, bool], ...] = (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(alternative_names(names, node_name)), False),
        (x509.SubjectKeyIdentifier.from_public_key(public), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(public), False),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    certificate = builder.sign(key, hashes.SHA256())
    return ServingPair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """A PKCS#10 request as PEM, and the key of the certificate to come, which is never shown."""

    request: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"SigningRequest(request={len(self.request)} bytes)"


def signing_request(node_name: str, names: Sequence[str]) -> SigningRequest:
    """What the signer ``kubernetes.io/kubelet-serving`` accepts: the subject of a node, its names,
    and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    alternatives = x509.SubjectAlternativeName(alternative_names(names, node_name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(node_name))
    signed = builder.add_extension(alternatives, False).sign(key, hashes.SHA256())
    return SigningRequest(signed.public_bytes(serialization.Encoding.PEM), key_pem(key))


def _subject(node_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node_name}"),
        ]
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as it stands in files and Secrets: PKCS #8, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def key_usage(*, certificates: bool) -> x509.KeyUsage:
    """Signing connections, or ``certificates`` and what revokes them as well."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def alternative_names(names: Sequence[str], node_name: str) -> list[x509.GeneralName]:
    """Each address once, in order: IPs as IPs, the rest as DNS names; the node's name last."""
    result: list[x509.GeneralName] = []
    for name in dict.fromkeys((*names, node_name)):
        try:
            result.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            result.append(x509.DNSName(name))
    return result


def renewal_time(pair: ServingPair) -> datetime:
    """When a certificate of ours should be replaced: at four fifths of its life."""
    certificate = x509.load_pem_x509_certificate(pair.chain)
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start + (end - start) * _RENEW_AT


def expiry(pair: ServingPair) -> datetime:
    """When the first certificate of a chain ends to be valid."""
    return x509.load_pem_x509_certificate(pair.chain).not_valid_after_utc
