from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_public_key
from cryptography.x509.oid import NameOID
from sigstore.models import TrustedRoot as OfficialRoot

from releasekit.errors import ConfigError
from releasekit.provenance.trust import PACKAGED, TrustedRoot, Validity, instance_at, trust_at

if TYPE_CHECKING:
    from provenance.sigstore_double import Sigstore

ROOT = Path(__file__).parents[2]
FOLDER = resources.files("releasekit.provenance")
RECORD = json.loads((FOLDER / "trusted_root.source.json").read_text())
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def test_the_packaged_root_is_what_sigstore_has_published() -> None:
    data = (FOLDER / PACKAGED).read_bytes()
    assert hashlib.sha256(data).hexdigest() == RECORD["sha256"]
    assert RECORD["licence"] == "Apache-2.0"


def test_the_packaged_root_is_installed_with_the_program(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.read(f"releasekit/provenance/{PACKAGED}")
    assert packed == (FOLDER / PACKAGED).read_bytes()


def test_the_packaged_root_has_the_public_instance() -> None:
    root = TrustedRoot.public()
    (log,) = [log for log in root.logs if log.url == "https://rekor.sigstore.dev"]
    # https://docs.sigstore.dev/logging/overview/ shows the key under this id.
    assert log.id.hex() == "c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d"
    assert hashlib.sha256(log.der).digest() == log.id
    assert root.log(log.id, NOW) == log
    (authority,) = [each for each in root.authorities if each.valid.covers(NOW)]
    issuer, top = map(x509.load_der_x509_certificate, authority.chain)
    issuer.verify_directly_issued_by(top)
    top.verify_directly_issued_by(top)
    (name,) = top.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert (authority.url, name.value) == ("https://fulcio.sigstore.dev", "sigstore")
    assert any(each.valid.covers(NOW) for each in root.ct_logs)
    for key in (*root.logs, *root.ct_logs):
        assert load_der_public_key(key.der) is not None
    assert trust_at(None) == root


def test_the_official_client_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "root.json"
    path.write_bytes((FOLDER / PACKAGED).read_bytes())
    official = OfficialRoot.from_file(str(path))
    ours = {der for each in TrustedRoot.public().authorities for der in each.chain}
    known = {each.subject.rfc4514_string() for each in official.get_fulcio_certs()}
    assert known <= {x509.load_der_x509_certificate(der).subject.rfc4514_string() for der in ours}


def test_a_client_trust_config_holds_a_root_too(sigstore: Sigstore) -> None:
    root = trust_at(sigstore.trusted_root)
    assert root == trust_at(sigstore.trust_config)
    assert root == instance_at(sigstore.trust_config).trust
    assert [log.url for log in root.logs] == [sigstore.url]


def test_a_key_counts_from_its_first_moment_to_its_last() -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    both = Validity(start, end)
    assert both.covers(start)
    assert both.covers(end)
    assert not both.covers(datetime(2025, 12, 31, tzinfo=UTC))
    assert not both.covers(datetime(2026, 2, 2, tzinfo=UTC))
    assert Validity().covers(NOW)


def spoiled(root: dict[str, Any], *path: str | int, value: object) -> None:
    inner: Any = root
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value


KEY = ("tlogs", 0, "publicKey")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("mediaType",), "text/plain", "mediaType is 'text/plain'; it has to be application/vnd."),
        (("tlogs",), None, "tlogs is not there; it has to be a list"),
        (("tlogs", 0, "baseUrl"), 7, "tlogs[0].baseUrl is 7; it has to be a text"),
        ((*KEY, "rawBytes"), "?", "tlogs[0].publicKey.rawBytes is '?'; it has to be base64"),
        ((*KEY, "validFor", "start"), "soon", "validFor.start is 'soon'; it has to be a time"),
        (("tlogs", 0, "logId"), [], "tlogs[0].logId.keyId is not there"),
        (("certificateAuthorities", 0, "certChain", "certificates"), [], "certificates is []"),
        (("ctlogs", 0), "x", "ctlogs[0].baseUrl is not there"),
    ],
)
def test_what_is_no_root_is_named_in_one_line(
    sigstore: Sigstore, tmp_path: Path, path: tuple[str | int, ...], value: object, says: str
) -> None:
    document = sigstore.root
    spoiled(document, *path, value=value)
    file = tmp_path / "root.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        trust_at(file)
    assert str(file) in str(caught.value)
    assert "; write the path of" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_root_that_cannot_be_used_is_found_before_anything_is_signed(
    sigstore: Sigstore, tmp_path: Path
) -> None:
    """Not once a release is out, when its statement is held against what an earlier run left."""
    config = json.loads(sigstore.trust_config.read_text())
    spoiled(config, "trustedRoot", "tlogs", value=None)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"config\.json: trustedRoot\.tlogs is not there"):
        instance_at(file)


def test_a_file_that_is_not_there_or_not_json_is_told(tmp_path: Path) -> None:
    says = r"^trust-config: .*: cannot be read \(.*\); write the path of a trusted root of Sigstore"
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ConfigError, match=says):
            trust_at(path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match=r"bad\.json: is not JSON: .*; write the path of"):
        trust_at(tmp_path / "bad.json")
