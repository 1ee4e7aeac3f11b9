"""Signs a pack and checks its signature, by OpenSSH's ssh-keygen; the signature is the file PACK.sig next to it.

ssh-keygen reads the private key, or asks the agent that holds it: this process has only its path.
"""

import subprocess
from pathlib import Path

from pipelines.base.errors import CheckError, UsageError

# ssh-keygen refuses a signature that was made for another purpose.
NAMESPACE = "trainledger-pack"


def refuse_no_key(key: Path) -> None:
    """UsageError where `key` cannot sign, before the pack is written."""
    if not key.is_file():
        raise UsageError(f"--sign {key} does not exist; name the file of an SSH key, such as ~/.ssh/id_ed25519.")
    if _ssh_keygen("-l", "-f", str(key)).returncode:
        raise UsageError(f"--sign {key} is not an SSH key; make one by `ssh-keygen -t ed25519 -f {key.name}.key`.")


def sign(pack: Path, key: Path) -> Path:
    """Write the signature of a pack, and return its file; UsageError where ssh-keygen does not sign."""
    made = _ssh_keygen("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, read=pack)
    if made.returncode:
        raise UsageError(f"{pack} is written and not signed: ssh-keygen cannot use {key} ({_reason(made)}).")
    signature = _signature_of(pack)
    signature.write_bytes(made.stdout)
    return signature


def signer_of(pack: Path, signers: Path) -> str:
    """Who of the allowed signers signed a pack; CheckError where none did, or where the pack changed since."""
    signature = _signature_of(pack)
    for file, what in ((pack, "the pack"), (signers, "a file of allowed signers, a line each: NAME ssh-ed25519 KEY")):
        if not file.is_file():
            raise UsageError(f"{file} does not exist; expected {what}.")
    if not signature.is_file():
        raise CheckError(f"{pack} is not signed: {signature} does not exist; have both files sent again.")
    known = ("-s", str(signature), "-f", str(signers))
    found = _ssh_keygen("-Y", "find-principals", *known)
    name = found.stdout.decode(errors="replace").partition("\n")[0].strip()
    if found.returncode or not name:
        raise CheckError(f"{signature} was not made by a key in {signers} ({_reason(found)}); ask who signed the pack.")
    checked = _ssh_keygen("-Y", "verify", *known, "-I", name, "-n", NAMESPACE, read=pack)
    if checked.returncode:
        raise CheckError(
            f"{pack} is not what {name} signed ({_reason(checked)}): it changed after signing; have it sent again."
        )
    return name


def _signature_of(pack: Path) -> Path:
    return pack.with_name(f"{pack.name}.sig")


def _ssh_keygen(*arguments: str, read: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", *arguments]
    try:
        if read is None:
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        with read.open("rb") as content:
            return subprocess.run(command, stdin=content, capture_output=True)
    except FileNotFoundError:
        raise UsageError("ssh-keygen is not installed; install OpenSSH 8.2 or newer, which signs packs.") from None


def _reason(run: subprocess.CompletedProcess[bytes]) -> str:
    lines = (run.stderr + run.stdout).decode(errors="replace").splitlines()
    return next((line.strip().rstrip(".") for line in lines if line.strip()), f"exit code {run.returncode}")
