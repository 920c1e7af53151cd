"""Certificates of a private authority: what they say, who may read the keys, and what `node check` finds wrong."""

import importlib
import os
import socket
import ssl
import stat
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from freewalk.errors import MissingExtra, PeerError
from freewalk.peers import operator
from freewalk.peers.network import certificates
from freewalk.peers.network.certificates import Authority, describe, problems
from freewalk.peers.network.config import AUTHORITY, CERTIFICATE, KEY
from freewalk.peers.network.init import listening

OWN = Authority.new("freewalk test")


def written(folder: Path, authority: Authority = OWN, name: str = "node-0001", **options) -> tuple[Path, Path, Path]:
    issued = authority.issue(name, **options)
    certificates.write(folder / CERTIFICATE, issued.certificate)
    certificates.write(folder / KEY, issued.key, secret=True)
    certificates.write(folder / AUTHORITY, authority.certificate)
    return folder / CERTIFICATE, folder / KEY, folder / AUTHORITY


def test_a_certificate_names_its_node_and_serves_both_ends() -> None:
    found = describe(OWN.issue("node-0007").certificate)
    assert (found.name, found.issuer, found.names) == ("node-0007", "freewalk test", ("node-0007",))
    assert found.addresses == ("127.0.0.1", "::1")
    assert set(found.usages) == {"server", "client"}
    assert timedelta(days=365) < found.ends - found.begins < timedelta(days=367)
    other = describe(OWN.issue("a", hosts=["10.1.2.3", "host.example"], years=0.01).certificate)
    assert (other.names, other.addresses) == (("a", "host.example"), ("10.1.2.3",))
    assert other.ends - other.begins < timedelta(days=4)
    authority = describe(OWN.certificate)
    assert authority.usages == ()
    assert timedelta(days=3652) < authority.ends - authority.begins < timedelta(days=3654)


def test_nothing_outlives_its_authority_and_no_key_is_shown() -> None:
    short = Authority.new("short", years=0.1)
    assert describe(short.issue("a").certificate).ends == describe(short.certificate).ends
    assert "PRIVATE" not in repr(short)
    assert repr(short) == "Authority('short')"


def test_keys_can_be_read_by_their_owner_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        _, key, _ = written(tmp_path)
        OWN.write(tmp_path)
    finally:
        os.umask(mask)
    for file in (key, tmp_path / certificates.AUTHORITY_KEY):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = Authority.read(tmp_path)
    assert again == OWN
    assert problems(*written(tmp_path, again), "node-0001") == []


def test_whatever_is_wrong_is_named_with_what_to_do(tmp_path: Path) -> None:
    files = written(tmp_path)
    assert problems(*files, "node-0001") == []

    def only(words: str, *remedies: str, name: str = "node-0001", now: datetime | None = None) -> None:
        (found,) = problems(*files, name, now)
        assert words in found
        for remedy in remedies:
            assert remedy in found

    only("belongs to 'node-0001', expected 'node-0002'", "issue a new one", name="node-0002")
    now = datetime.now(UTC)
    only("expired at", f"the clock of this machine says {now + timedelta(days=400):%Y-%m-%d}", now=now + timedelta(400))
    ends = describe(files[0].read_bytes()).ends
    only(f"expires on {ends:%Y-%m-%d}, in 1 day; issue a new one", now=ends - timedelta(days=1, hours=2))
    only("in 29 days; issue a new one", now=ends - timedelta(days=29, hours=2))
    only("today or tomorrow; issue a new one", now=ends - timedelta(hours=2))
    assert problems(*files, "node-0001", ends - timedelta(days=31)) == []
    early = problems(*files, "node-0001", now - timedelta(days=1))
    assert len(early) == 2  # the authority, too
    assert all("set the clock right" in one for one in early)
    files[1].chmod(0o640)
    only("mode 0640", f"chmod 600 {files[1]}")
    certificates.write(files[1], OWN.issue("node-0001").key, secret=True)
    only("does not belong to", "copy both")
    files = written(tmp_path)
    certificates.write(files[2], Authority.new("freewalk test").certificate)  # of the same name
    only("with a key other than", "the same network")
    files[0].write_text("nothing")
    only("is not a certificate")
    files = written(tmp_path)
    files[1].write_text("nothing")
    only("is not an unencrypted private key")
    files[1].unlink()
    only("cannot be read", "network init")


def test_a_name_that_only_the_subject_has(tmp_path: Path) -> None:
    """Connections go by the subject alternative names, so the common name is not enough."""
    key = certificates.ec.generate_private_key(certificates.ec.SECP256R1())
    builder = certificates._builder(
        "berlin", "freewalk test", key.public_key(), 1.0, datetime.now(UTC) + timedelta(400)
    )
    both = certificates.x509.ExtendedKeyUsage(
        [certificates.ExtendedKeyUsageOID.SERVER_AUTH, certificates.ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    signer = certificates._key(OWN.key, "")
    for names in ([], ["paris"]):
        files = written(tmp_path)
        made = builder.add_extension(both, critical=False)
        if names:
            others = certificates.x509.SubjectAlternativeName([certificates.x509.DNSName(one) for one in names])
            made = made.add_extension(others, critical=False)
        certificate, own = certificates._signed(made, key, signer)
        certificates.write(files[0], certificate)
        certificates.write(files[1], own, secret=True)
        (found,) = problems(*files, "berlin")
        words = f"DNS names (subject alternative names) are {names or 'none'}, expected 'berlin' among them; issue"
        assert f"belongs to 'berlin', but its {words}" in found


def test_an_authority_that_expires_soon(tmp_path: Path) -> None:
    """Nothing that it has signed outlives it, so that both are named."""
    of_node, of_authority = problems(*written(tmp_path, Authority.new("short", years=10 / 365.25)), "node-0001")
    assert "in 9 days; issue a new one" in of_node
    assert "in 9 days; this network needs a new authority" in of_authority


def test_an_operator_is_no_authority(tmp_path: Path) -> None:
    """Whoever has a certificate cannot sign others with it."""
    issued = OWN.issue("operator")
    false = Authority(issued.certificate, issued.key)
    certificate, key, _ = written(tmp_path, false, "node-0001")
    certificates.write(tmp_path / AUTHORITY, OWN.certificate)
    (found,) = problems(certificate, key, tmp_path / AUTHORITY, "node-0001")
    assert "signed by 'operator'" in found


def test_both_ends_of_a_connection_know_each_other(tmp_path: Path) -> None:
    """Mutual TLS by the standard library, so that gRPC is not the only one to think they are right."""
    folders = [tmp_path / name for name in ("server", "client", "stranger")]
    for folder in folders:
        folder.mkdir()
    files = [written(folders[0]), written(folders[1], name="operator")]
    files.append(written(folders[2], Authority.new("another"), name="operator"))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files[0][2])
    server.load_cert_chain(*files[0][:2])
    server.verify_mode = ssl.CERT_REQUIRED
    names: list[str] = []

    def serve(sockets) -> None:
        try:
            with server.wrap_socket(sockets.accept()[0], server_side=True) as one:
                (((_, name),),) = one.getpeercert()["subject"]
                names.append(name)
                one.sendall(b"welcome")
        except (ssl.SSLError, OSError):
            names.append("refused")

    for mine in files[1:]:
        with listening("127.0.0.1", 0) as sockets:
            thread = threading.Thread(target=serve, args=(sockets,))
            thread.start()
            client = ssl.create_default_context(cafile=files[0][2])
            client.load_cert_chain(*mine[:2])
            with socket.create_connection(sockets.getsockname()) as plain:
                try:
                    with client.wrap_socket(plain, server_hostname="node-0001") as one:
                        said = one.recv(7)
                except (ssl.SSLError, OSError):
                    said = b""
            thread.join()
            assert (said, names[-1]) == ((b"welcome", "operator") if mine is files[1] else (b"", "refused"))


def test_names_and_years_are_checked() -> None:
    with pytest.raises(PeerError, match="up to 64 letters"):
        OWN.issue("a" * 65)
    with pytest.raises(PeerError, match="years = 0"):
        Authority.new("a", years=0)
    with pytest.raises(PeerError, match="a name in ASCII"):
        OWN.issue("a", hosts=["köln.example"])


@pytest.mark.parametrize(("package", "module"), [("cryptography", certificates), ("grpc", operator)])
def test_the_missing_package_is_named(package: str, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[peers\]"'):
        importlib.reload(module)
