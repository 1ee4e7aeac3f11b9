"""Packs signed by an SSH key, and the checks of their signatures: OpenSSH's, with keys made here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.commands import run_command
from support.small_company import Company

from pipelines.base.errors import UsageError
from pipelines.evidence.signature import NAMESPACE, sign, signer_of

Captured = pytest.CaptureFixture[str]


def key_of(name: str, folder: Path) -> Path:
    """A new key without a passphrase."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    return folder / name


def signers_of(*keys: Path) -> Path:
    """The file that allows these keys, each under its name."""
    file = keys[0].parent / "signers"
    public = [(key.name, key.with_suffix(".pub").read_text().split()[:2]) for key in keys]
    file.write_text("".join(f"{name}@acme.dev {' '.join(key)}\n" for name, key in public))
    return file


@pytest.fixture
def signed(pack: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A pack that ada signed, and the file that allows her key."""
    copied = Path(shutil.copy(pack, tmp_path / "evidence.zip"))
    key = key_of("ada", tmp_path / "keys")
    sign(copied, key)
    return copied, signers_of(key)


def test_anybody_can_check_a_signature(signed: tuple[Path, Path]) -> None:
    """`ssh-keygen -Y verify` accepts it, without this program."""
    out, signers = signed
    with out.open("rb") as content:
        command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "ada@acme.dev", "-n", NAMESPACE]
        subprocess.run([*command, "-s", f"{out}.sig"], stdin=content, check=True, capture_output=True)
    assert signer_of(out, signers) == "ada@acme.dev"


@pytest.mark.slow
def test_the_commands_sign_and_verify(company: Company, tmp_path: Path, capsys: Captured) -> None:
    key = key_of("ada", tmp_path / "keys")
    out = tmp_path / "evidence.zip"
    words = ("--config", str(company.config), "--out", str(tmp_path / "report.html"), "--pack", str(out), "--bundle")
    written = run_command(capsys, "report", *words, "--sign", str(key))
    assert written.code == 0 and f"Signature written to {out}.sig." in written.out
    verified = run_command(capsys, "verify", str(out), "--signer", str(signers_of(key)))
    assert verified.code == 0
    assert verified.out.startswith("Signed by ada@acme.dev.\nVERIFIED: publication 1, ")


def test_a_pack_without_a_signature_is_refused(pack: Path, signed: tuple[Path, Path], capsys: Captured) -> None:
    refused = run_command(capsys, "verify", str(pack), "--signer", str(signed[1]))
    assert refused.code == 1 and f"{pack} is not signed: {pack}.sig does not exist" in refused.err


def test_a_pack_signed_by_another_is_refused(signed: tuple[Path, Path], capsys: Captured) -> None:
    out, signers = signed
    sign(out, key_of("eve", signers.parent))
    refused = run_command(capsys, "verify", str(out), "--signer", str(signers))
    assert refused.code == 1 and f"{out}.sig was not made by a key in {signers}" in refused.err


def test_a_key_that_is_allowed_for_another_purpose_is_refused(signed: tuple[Path, Path], capsys: Captured) -> None:
    """Eve may sign commits only."""
    out, signers = signed
    sign(out, eve := key_of("eve", signers.parent))
    signers_of(eve)
    signers.write_text(signers.read_text().replace("eve@acme.dev", 'eve@acme.dev namespaces="git"'))
    refused = run_command(capsys, "verify", str(out), "--signer", str(signers))
    assert refused.code == 1 and "Signed by" not in refused.out


def test_a_pack_changed_after_signing_is_refused(signed: tuple[Path, Path], capsys: Captured) -> None:
    """One byte at its end, and one bit in its middle."""
    out, signers = signed
    content = out.read_bytes()
    middle = len(content) // 2
    for changed in (content + b"\0", content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]):
        out.write_bytes(changed)
        refused = run_command(capsys, "verify", str(out), "--signer", str(signers))
        assert refused.code == 1 and f"{out} is not what ada@acme.dev signed" in refused.err
        assert "changed after signing" in refused.err and "Signed by" not in refused.out


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"]
)
def test_a_damaged_signature_is_refused(signed: tuple[Path, Path], capsys: Captured, content: bytes) -> None:
    out, signers = signed
    Path(f"{out}.sig").write_bytes(content)
    refused = run_command(capsys, "verify", str(out), "--signer", str(signers))
    assert refused.code == 1 and "Traceback" not in refused.err and "Signed by" not in refused.out


def test_what_cannot_sign_is_refused_before_the_pack_is_written(
    company: Company, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, text = tmp_path / "evidence.zip", tmp_path / "notes.txt"
    text.write_text("no key")
    words = ("report", "--config", str(company.config), "--out", str(tmp_path / "report.html"))
    for key, sentence in ((tmp_path / "none", "does not exist"), (text, "is not an SSH key")):
        refused = run_command(capsys, *words, "--pack", str(out), "--sign", str(key))
        assert refused.code == 2 and f"--sign {key} {sentence}" in refused.err
    assert "--sign requires --pack" in run_command(capsys, *words, "--sign", str(text)).err
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = run_command(capsys, *words, "--pack", str(out), "--sign", str(text))
    assert missing.code == 2 and "ssh-keygen is not installed; install OpenSSH" in missing.err
    assert not out.exists()


def test_a_key_that_cannot_be_used_leaves_no_signature(pack: Path, tmp_path: Path) -> None:
    """A public key alone, whose private half no agent holds."""
    key = key_of("ada", tmp_path / "keys")
    key.unlink()
    out = Path(shutil.copy(pack, tmp_path / "evidence.zip"))
    with pytest.raises(UsageError, match="is written and not signed: ssh-keygen cannot use"):
        sign(out, key.with_suffix(".pub"))
    assert not Path(f"{out}.sig").exists()
