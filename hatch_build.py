"""What the metadata of a distribution says beyond pyproject.toml: its addresses, and the README with full links."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Links(MetadataHookInterface):
    """All addresses begin with REPOSITORY in src/sidelong/_version.py, which is their only place."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, and the README as an index shows it: it has no files beside it."""
        root = Path(self.root)
        about = runpy.run_path(str(root / "src" / "sidelong" / "_version.py"))
        repository, tag = about["REPOSITORY"], f"v{about['__version__']}"
        metadata["urls"] = {
            "Source": repository,
            "Documentation": f"{repository}/blob/{tag}/docs/index.md",
            "Changes": f"{repository}/blob/{tag}/CHANGELOG.md",
        }
        text = (root / "README.md").read_text("utf-8")
        text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\1{repository}/raw/{tag}/", text)
        text = re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?:|#)", rf"\1{repository}/blob/{tag}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
