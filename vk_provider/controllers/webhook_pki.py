"""The webhook's own authority, the certificates it signs, and both as a Secret holds them.

Fed by ``controllers.webhook_certificates``; the keys are random, everything else is given.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vk_provider.bursting.serving_certificates import Held
from vk_provider.pods.types import Json
from vk_provider.server.certificate import ServingPair, alternative_names, key_pem, key_usage

AUTHORITY_LIFE = timedelta(days=365)
SERVING_LIFE = timedelta(days=90)
RENEW_AT = 2 / 3
"""The part of a life after which its successor is made."""
_SKEW = timedelta(minutes=5)
_CA, _CA_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True)
class Certificates:
    """What the Secret holds, as PEM: believed authorities (newest first), the newest one's key, and
    what is served."""

    authorities: tuple[bytes, ...]
    authority_key: bytes = field(repr=False)
    serving: ServingPair

    @property
    def bundle(self) -> bytes:
        """The authorities as the API server takes them."""
        return b"".join(self.authorities)


def begin(names: Sequence[str], now: datetime) -> Certificates:
    """A new authority, and a certificate by it."""
    certificate, key = _authority(now)
    return Certificates((certificate,), key, _signed(certificate, key, names, now))


def with_new_authority(held: Certificates, now: datetime) -> Certificates:
    """A new authority beside the newest one; what is served stays."""
    certificate, key = _authority(now)
    return Certificates((certificate, held.authorities[0]), key, held.serving)


def renewed(held: Certificates, names: Sequence[str], now: datetime) -> Certificates:
    """A new certificate by the newest authority."""
    serving = _signed(held.authorities[0], held.authority_key, names, now)
    return Certificates(held.authorities, held.authority_key, serving)


def without_old_authorities(held: Certificates) -> Certificates:
    """The newest one alone."""
    return Certificates(held.authorities[:1], held.authority_key, held.serving)


def to_secret(held: Certificates) -> dict[str, str]:
    """The ``data`` of the Secret."""
    texts = {
        _CA: held.bundle,
        _CA_KEY: held.authority_key,
        _CERTIFICATE: held.serving.chain,
        _KEY: held.serving.key,
    }
    return {key: base64.b64encode(content).decode() for key, content in texts.items()}


def from_secret(secret: Json | None) -> Certificates | None:
    """What a Secret holds; None if it can't be used, whoever wrote it."""
    found: Mapping[str, str] = (secret or {}).get("data") or {}
    try:
        bundle, authority_key, chain, key = (
            base64.b64decode(found[name], validate=True)
            for name in (_CA, _CA_KEY, _CERTIFICATE, _KEY)
        )
        authorities = x509.load_pem_x509_certificates(bundle)
        signer = _load_key(authority_key)
        served = _load_key(key)
        leaf = x509.load_pem_x509_certificate(chain)
    except (KeyError, ValueError, TypeError, binascii.Error):
        return None
    if not authorities or signer.public_key() != authorities[0].public_key():
        return None
    if served.public_key() != leaf.public_key():
        return None
    pem = serialization.Encoding.PEM
    return Certificates(
        tuple(one.public_bytes(pem) for one in authorities), authority_key, ServingPair(chain, key)
    )


def described(held: Certificates) -> Held:
    """The facts by which the next step is chosen."""
    newest = x509.load_pem_x509_certificate(held.authorities[0])
    leaf = x509.load_pem_x509_certificate(held.serving.chain)
    return Held(
        authorities=len(held.authorities),
        authority_renewal=_renewal(newest),
        authority_end=newest.not_valid_after_utc,
        names=frozenset(_names_of(leaf)),
        is_signed_by_newest=_is_signed_by(leaf, newest),
        signed_at=leaf.not_valid_before_utc + _SKEW,
        renewal=_renewal(leaf),
    )


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("no key of ours")
    return key


def _renewal(certificate: x509.Certificate) -> datetime:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start + (end - start) * RENEW_AT


def _names_of(leaf: x509.Certificate) -> list[str]:
    extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in extension.value]


def _is_signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError):
        return False
    return True


def _authority(now: datetime) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities of one name in a bundle would be taken for one.
    name = f"vk-provider-webhook-ca {now:%Y-%m-%dT%H:%M:%S.%f}"
    subject = _subject(name)
    usage = key_usage(certificates=True)
    builder = _builder(subject, subject, key, now, AUTHORITY_LIFE)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .add_extension(usage, True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)


def _signed(
    authority: bytes, authority_key: bytes, names: Sequence[str], now: datetime
) -> ServingPair:
    issuer = x509.load_pem_x509_certificate(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_subject("vk-provider-webhook"), issuer.subject, key, now, SERVING_LIFE)
    alternatives = alternative_names(names[1:], names[0])
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(key_usage(certificates=False), True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .add_extension(x509.SubjectAlternativeName(alternatives), False)
        # By its key, since several authorities are believed while they change.
        .add_extension(_issued_by(issuer), False)
        .sign(_load_key(authority_key), hashes.SHA256())
    )
    return ServingPair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


def _issued_by(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(_public(issuer))


def _public(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("no certificate of ours")
    return key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
