"""The serving certificate of our own."""

from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vk_provider.server.certificate import expiry, renewal_time, self_signed

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_its_names_are_a_kubelets() -> None:
    """CN, organization, and every address as what it is."""
    pair = self_signed("burst", ["10.0.0.7", "fd00::7", "vk.example.test", "10.0.0.7"], NOW)
    certificate = x509.load_pem_x509_certificate(pair.chain)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    assert common == "system:node:burst"
    assert names.get_values_for_type(x509.IPAddress) == [
        ip_address("10.0.0.7"),
        ip_address("fd00::7"),
    ]
    assert names.get_values_for_type(x509.DNSName) == ["vk.example.test", "burst"]


def test_its_key_is_p_256() -> None:
    """Small and fast, and accepted everywhere."""
    key = x509.load_pem_x509_certificate(self_signed("n", [], NOW).chain).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"


def test_it_is_renewed_before_its_end() -> None:
    """At four fifths of its life."""
    pair = self_signed("n", [], NOW)
    assert NOW < renewal_time(pair) < expiry(pair)
    assert (expiry(pair) - renewal_time(pair)).days >= 70


def test_its_key_is_not_shown() -> None:
    """Not even by accident."""
    assert "PRIVATE" not in repr(self_signed("n", [], NOW))
