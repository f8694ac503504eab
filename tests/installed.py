"""What tests need that pip does not install: `make test` does, where it may. Elsewhere they are skipped, loudly."""

import os
import shutil
from pathlib import Path

import pytest

MISSING = "not installed: "  # how the reason of such a skip begins


def chromium():
    """Return the browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return Path(found) if found else _missing("chromium")


def curl():
    """Return the program that pages about the service use."""
    return Path(shutil.which("curl") or _missing("curl"))


def postgresql():
    """Return the folder of PostgreSQL's programs: initdb, postgres and others."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.partition(".")[0])
    )
    on_path = shutil.which("initdb")
    if folders and (folders[-1] / "initdb").exists():
        return folders[-1]
    return Path(on_path).parent if on_path else _missing("postgresql")


def nginx():
    """Return the proxy."""
    return Path(shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or _missing("nginx-light"))


def openssl():
    """Return the program that makes a certificate for the proxy."""
    return Path(shutil.which("openssl") or _missing("openssl"))


def generators():
    """Return the folder of the generators of clients, that ``tests/generators.sh`` makes."""
    folder = Path(__file__).parents[1] / "build" / "generators"
    return folder if (folder / "stamp").exists() else _missing("generators of clients", "make build/generators/stamp")


def client_environment():
    """Return the environment, without sidelong, that ``tests/client_environment.sh`` makes."""
    folder = Path(__file__).parents[1] / "build" / "client"
    return folder if (folder / "stamp").exists() else _missing("environment of the client", "make packages")


def litellm_environment():
    """Return the environment with LiteLLM that ``tests/litellm.sh`` makes."""
    folder = Path(__file__).parents[1] / "build" / "litellm"
    return folder if (folder / "stamp").exists() else _missing("environment of LiteLLM", "make build/litellm/stamp")


def _missing(package, how=None):
    reason = f"{MISSING}{package} ({how or f'apt-get install {package}'})"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}. Where CI=true nothing is skipped for want of a package.", pytrace=False)
    pytest.skip(reason)
