"""A private certificate authority, and the certificates that it signs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from freewalk.checks import show
from freewalk.errors import MissingExtra, PeerError
from freewalk.peers.network.config import AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY, attempted, check
from freewalk.peers.node.process import exposed
from freewalk.peers.protocol.token import Generation, Key, Trust
from freewalk.peers.protocol.wire import pb
from freewalk.storage.files import regular

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise MissingExtra("cryptography", "peers") from None

YEARS, YEARS_OF_AUTHORITY = 1.0, 10.0
LOOPBACK = ("127.0.0.1", "::1")
_BEFORE = timedelta(minutes=5)  # tolerance for clocks that differ a little
_LONGEST = 64  # letters of a common name
_SOON = timedelta(days=30)  # before the end, to leave time for issuing a new certificate
#: What the keys of certificates are not for.
_UNUSED: tuple[str, ...] = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
_UNUSED += ("encipher_only", "decipher_only")


class Description(NamedTuple):
    """The contents of a certificate."""

    name: str  # the common name of its owner
    issuer: str  # and of its signer
    names: tuple[str, ...]  # DNS names
    addresses: tuple[str, ...]  # IP addresses
    uris: tuple[str, ...]  # one has the number of a node
    begins: datetime
    ends: datetime
    usages: tuple[str, ...]  # "server", "client", both, or for an authority neither
    parsed: x509.Certificate


class Issued(NamedTuple):
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key, so that it never appears in a log."""
        return f"{type(self).__name__}({describe(self.certificate).name!r})"


class Authority(Issued):
    """A certificate authority: the owner of its key admits nodes to a network."""

    @staticmethod
    def new(name: str, years: float = YEARS_OF_AUTHORITY) -> Authority:
        """A new authority with its own key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key.public_key(), years)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return Authority(*_signed(builder.add_extension(own, critical=False), key, key))

    @staticmethod
    def read(folder: Path) -> Authority:
        """The authority whose certificate and key are in the folder of the operator."""
        return Authority(_read(folder / AUTHORITY), _read(folder / AUTHORITY_KEY))

    def write(self, folder: Path) -> None:
        """Write certificate and key to the folder of the operator, the only place for the key."""
        write(folder / AUTHORITY, self.certificate)
        write(folder / AUTHORITY_KEY, self.key, secret=True)

    def equip(self, folder: Path, name: str, hosts: Sequence[str] = LOOPBACK, number: int | None = None) -> None:
        """Write a new certificate and its key to the folder of a node or an operator, and whom to trust."""
        issued = self.issue(name, hosts, number=number)
        write(folder / CERTIFICATE, issued.certificate)
        write(folder / KEY, issued.key, secret=True)
        write(folder / AUTHORITY, self.certificate)

    def issue(
        self, name: str, hosts: Sequence[str] = LOOPBACK, years: float = YEARS, number: int | None = None
    ) -> Issued:
        """A certificate for a node, with its number, or an operator, for both ends of a connection, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = describe(self.certificate, "the certificate of the authority")
        builder = _builder(name, own.name, key.public_key(), years, own.ends)
        names = [_general_name(name, host) for host in dict.fromkeys((name, *hosts))]
        if number is not None:
            names.append(x509.UniformResourceIdentifier(_uri(number)))
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        signer: Any = own.parsed.public_key()
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer)
        for one in (x509.SubjectAlternativeName(names), both, by):
            builder = builder.add_extension(one, critical=False)
        return Issued(*_signed(builder, key, _key(self.key, "the key of the authority")))


class Signatures(Trust):
    """What one node or the operator signs, and what it believes of others: what the network's authority lets them say.

    The operator permits walks, and a node proves the generations that it issues.
    """

    def __init__(
        self, certificate: bytes, key: bytes, authority: bytes, operator: str, number: int | None = None
    ) -> None:
        own, self._key = describe(certificate), _key(key, "the key")
        if not isinstance(self._key, ec.EllipticCurvePrivateKey):
            raise PeerError("the key cannot sign, expected one of an elliptic curve, as the authority issues them")
        if number is not None and _uri(number) not in own.uris:
            why = f"the certificate does not name node {number}, so that nobody would believe what it signs"
            raise PeerError(f"{why}; issue new ones with: freewalk network init --upgrade DIR")
        self._own = own.parsed.public_bytes(serialization.Encoding.DER)
        self._authority = describe(authority, "the certificate of the authority").parsed
        self._operator = operator
        self._starts: dict[Key, int] = {}  # of permitted walks
        self._verified: dict[bytes, Description] = {}

    @staticmethod
    def read(certificate: Path, key: Path, authority: Path, operator: str, number: int | None = None) -> Signatures:
        """Those of the owner of a key."""
        return Signatures(_read(certificate), _read(key), _read(authority), operator, number)

    def permit(self, key: Key, start: int) -> bytes:
        """The operator's permit for a walk."""
        return self._signed(_words("permit", *key, start), start)

    def permits(self, key: Key, permit: bytes) -> bool:
        """Whether the operator launched a walk."""
        if key not in self._starts and permit:
            signer, start = self._signer(permit, lambda start: _words("permit", *key, start))
            if signer is not None and signer.name == self._operator:
                self._starts[key] = start
        return key in self._starts

    def sign(self, key: Key, generation: Generation) -> bytes:
        """The proof of a generation that this node issues."""
        return self._signed(_words("generation", *key, *generation))

    def proves(self, key: Key, generation: Generation, proof: bytes) -> bool:
        """Whether the issuer of a generation signed it; the first one is as the permit says."""
        if generation.number == 0:
            return self._starts.get(key) == generation.issuer
        signer, _ = self._signer(proof, lambda _: _words("generation", *key, *generation))
        return signer is not None and _uri(generation.issuer) in signer.uris

    def _signed(self, words: bytes, start: int = 0) -> bytes:
        signature = self._key.sign(words, ec.ECDSA(hashes.SHA256()))
        return bytes(pb.Signed(certificate=self._own, signature=signature, start=start).SerializeToString())

    def _signer(self, data: bytes, words: Callable[[int], bytes]) -> tuple[Description | None, int]:
        """Who signed words with a start, and the start; None unless it was somebody with a certificate of ours."""
        try:
            found = pb.Signed.FromString(data)
            if found.certificate not in self._verified:
                signer = x509.load_der_x509_certificate(found.certificate)
                signer.verify_directly_issued_by(self._authority)
                self._verified[found.certificate] = _description(signer)
            described = self._verified[found.certificate]
            public: Any = described.parsed.public_key()
            public.verify(found.signature, words(found.start), ec.ECDSA(hashes.SHA256()))
        except Exception:  # whatever is wrong with it
            return None, 0
        return described, found.start


def _words(*words: object) -> bytes:
    """What is signed."""
    return ("freewalk " + "\0".join(map(str, words))).encode()


def _uri(number: int) -> str:
    """How a certificate names the number of a node."""
    return f"freewalk:node:{number}"


def describe(pem: bytes, what: str = "the certificate") -> Description:
    """What a certificate says."""
    try:
        return _description(x509.load_pem_x509_certificate(pem))
    except ValueError:
        raise PeerError(f"{what}: is not a certificate, expected one as PEM") from None


def _description(found: x509.Certificate) -> Description:
    common = [whose.get_attributes_for_oid(NameOID.COMMON_NAME) for whose in (found.subject, found.issuer)]
    name, issuer = ("".join(str(one.value) for one in several[:1]) for several in common)
    extensions: dict[type, Any] = {type(one.value): one.value for one in found.extensions}
    others = extensions.get(x509.SubjectAlternativeName, x509.SubjectAlternativeName([]))
    kinds: tuple[type, ...] = (x509.DNSName, x509.IPAddress, x509.UniformResourceIdentifier)
    names, addresses, uris = (tuple(map(str, others.get_values_for_type(kind))) for kind in kinds)
    words = {ExtendedKeyUsageOID.SERVER_AUTH: "server", ExtendedKeyUsageOID.CLIENT_AUTH: "client"}
    usages = tuple(words[one] for one in extensions.get(x509.ExtendedKeyUsage, ()) if one in words)
    times = found.not_valid_before_utc, found.not_valid_after_utc
    return Description(name, issuer, names, addresses, uris, *times, usages, found)


def problems(certificate: Path, key: Path, authority: Path, name: str, now: datetime | None = None) -> list[str]:
    """The problems of a node's certificate, each with a remedy; empty if there are none."""
    now = datetime.now(UTC) if now is None else now
    found: list[str] = []
    try:
        described, signer = (describe(_read(one), str(one)) for one in (certificate, authority))
        private = _key(_read(key), str(key))
    except PeerError as error:
        return [str(error)]
    again = "issue a new one with the authority of this network"
    if described.name != name:
        found.append(f"{certificate}: belongs to {show(described.name)}, expected {name!r}, the node's name; {again}")
    elif name not in described.names:
        names = f"are {show(list(described.names))}" if described.names else "are none"
        names = f"DNS names (subject alternative names) {names}, expected {name!r} among them"
        found.append(f"{certificate}: belongs to {name!r}, but its {names}; {again}")
    if missing := [usage for usage in ("server", "client") if usage not in described.usages]:
        found.append(f"{certificate}: is not meant for a {' and a '.join(missing)}, expected one for both; {again}")
    try:
        described.parsed.verify_directly_issued_by(signer.parsed)
    except Exception:  # a ValueError, a TypeError or an InvalidSignature: it is not from there
        found.append(
            f"{certificate}: was signed by {show(described.issuer)} with a key other than that in {authority}, "
            "expected the authority of this network; copy both from the same network"
        )
    if private.public_key() != described.parsed.public_key():
        found.append(f"{key}: does not belong to {certificate}; copy both from the same folder")
    clock = f"but the clock of this machine says {now:%Y-%m-%d %H:%M} UTC"
    renewed = "this network needs a new authority, and new certificates signed by it"
    for file, one, remedy in ((certificate, described, again), (authority, signer, renewed)):
        if now < one.begins:
            found.append(f"{file}: is valid from {one.begins:%Y-%m-%d %H:%M} UTC, {clock}; set the clock right")
        if now > one.ends:
            found.append(f"{file}: expired at {one.ends:%Y-%m-%d %H:%M} UTC, {clock}; if it is right, {remedy}")
        elif (left := one.ends - now) < _SOON:
            days = f"in {left.days} day{'s' * (left.days != 1)}" if left.days else "today or tomorrow"
            found.append(f"{file}: expires on {one.ends:%Y-%m-%d}, {days}; {remedy}")
    if mode := exposed(key):
        found.append(f"{key}: others than its owner may open it (mode {mode}), expected 0600; chmod 600 {key}")
    return found


def write(path: Path, data: bytes, secret: bool = False) -> None:
    """Write a file that anybody may read; a secret one only its owner can read, at any time."""
    mode = 0o600 if secret else 0o644
    with attempted(f"{path}: cannot be written", "give another folder"):
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())


def _builder(name: str, issuer: str, public: Any, years: float, end: datetime | None = None) -> Any:
    """A certificate to be signed; it ends when that of its authority does, and without `end` it is an authority's."""
    check.text("certificates", "name", name)
    if len(name) > _LONGEST:
        raise check.fail("certificates", "name", name, f"a name of up to {_LONGEST} letters")
    days = 365.25 * check.real("certificates", "years", years, high=1000.0, above=0.0)
    now = datetime.now(UTC).replace(microsecond=0)
    last, signs = now + timedelta(days=days), end is None
    subject, signer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, issuer))
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=signs, crl_sign=signs, **dict.fromkeys(_UNUSED, False))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(last if end is None else min(last, end))
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(usage, critical=True)
    )


def _general_name(owner: str, host: str) -> Any:
    with suppress(ValueError):
        if host != owner:
            return x509.IPAddress(ip_address(host))
    try:
        return x509.DNSName(host)
    except ValueError:
        raise check.fail(f"the certificate of {owner}", "host", host, "an IP address or a name in ASCII") from None


def _signed(builder: Any, key: Any, signer: Any) -> tuple[bytes, bytes]:
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return builder.sign(signer, hashes.SHA256()).public_bytes(pem), key.private_bytes(pem, *plain)


def _key(pem: bytes, what: str) -> Any:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # never quote its contents
        raise PeerError(f"{what}: is not an unencrypted private key, expected one as PEM") from None


def _read(path: Path) -> bytes:
    with attempted(f"{path}: cannot be read", "`freewalk network init` writes it"):
        return regular(path).read_bytes()
