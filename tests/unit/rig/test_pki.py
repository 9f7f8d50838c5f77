"""The certificates of a test bed."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.rig.pki import Authority, service_account_keys


def load(path: Path) -> x509.Certificate:
    """Read a certificate file."""
    return x509.load_pem_x509_certificate(path.read_bytes())


def usages(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    """What a certificate may be used for."""
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_leaf_is_issued_by_the_authority(tmp_path: Path) -> None:
    """Its signature verifies, and it names the key that made it (Python 3.13 insists)."""
    authority = Authority(tmp_path)
    ca = load(authority.files.certificate)

    leaf = load(authority.issue("admin", "admin").certificate)

    leaf.verify_directly_issued_by(ca)
    named = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert named.key_identifier == own.digest


def test_user_and_groups_are_the_subject(tmp_path: Path) -> None:
    """That is how the API server reads a client certificate."""
    pair = Authority(tmp_path).issue("n", "system:node:n", ["system:nodes", "more"])

    subject = load(pair.certificate).subject

    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
        "system:node:n"
    ]
    groups = {a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)}
    assert groups == {"system:nodes", "more"}


def test_server_names_its_addresses(tmp_path: Path) -> None:
    """Addresses and names are told apart."""
    pair = Authority(tmp_path).issue("s", "server", hosts=["127.0.0.1", "localhost"])

    certificate = load(pair.certificate)

    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert ExtendedKeyUsageOID.SERVER_AUTH in usages(certificate)


def test_client_is_no_server(tmp_path: Path) -> None:
    """A user's certificate cannot pose as the API server."""
    pair = Authority(tmp_path).issue("u", "user")

    assert usages(load(pair.certificate)) == {ExtendedKeyUsageOID.CLIENT_AUTH}


def test_keys_are_private(tmp_path: Path) -> None:
    """Only the owner reads a key, on a shared machine too."""
    authority = Authority(tmp_path)
    keys = [
        authority.files.key,
        authority.issue("u", "user").key,
        service_account_keys(tmp_path).key,
    ]

    assert {key.stat().st_mode & 0o077 for key in keys} == {0}


def test_service_account_keys_belong_together(tmp_path: Path) -> None:
    """The API server verifies with one what it signed with the other."""
    pair = service_account_keys(tmp_path)
    private = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    public = serialization.load_pem_public_key(pair.certificate.read_bytes())

    assert private.public_key() == public
