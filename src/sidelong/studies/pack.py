"""A pack: a study with its files, its results and what made them, as one archive that anybody can run again.

::

    pack.json            versions, and the SHA-256 of every other entry; their hash is the content hash of the pack
    study.json           what the study says, and its cells in order
    files/HASH/NAME      the files that the study names
    cells/NAME.parquet   the results of a cell

It is a ZIP archive. The same folder gives the same bytes. Of an archive from elsewhere nothing is believed: names
other than these are refused, sizes are bounded, and every entry must have its hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ValidationError

from sidelong._install import NEWER
from sidelong._version import __version__
from sidelong.errors import StudyError
from sidelong.learners.citations import commit
from sidelong.machine import replacing
from sidelong.studies.cell import canonical
from sidelong.studies.files import read_regular
from sidelong.studies.folder import read_study
from sidelong.studies.results import in_order, read_provenance

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
#: How many bytes the entries of a pack may have together.
MAX_BYTES = 4 * 2**30
_MAX_ENTRIES = 200_002  # cells and files of the largest study
_ENTRY = re.compile(r"pack\.json|study\.json|files/[0-9a-f]{64}/[^/\\\0]{1,255}|cells/[0-9a-f]{32}\.parquet")
_TOLD = ("version", "source", "platform", "python", "numpy", "numba")  # what result files tell of what made them


class _About(BaseModel):
    """What pack.json tells."""

    format: Literal["sidelong-pack"]
    version: int
    sidelong: str
    commit: str
    made_by: dict[str, list[str]]
    entries: dict[str, str]
    sha256: str


def is_pack(path: Path) -> bool:
    """Tell whether a file is an archive."""
    return path.is_file() and zipfile.is_zipfile(path)


def write_pack(folder: Path, out: Path) -> str:
    """Write the pack of a folder of results, and return its content hash.

    Raises:
        StudyError: there is no study, cells of it are missing, or a file is damaged.
    """
    study = read_study(folder)
    if study is None:
        raise StudyError(f"{folder}: there is no study here; `sidelong run` writes its results to a folder.")
    there = {path.stem: path for path in in_order(folder)}
    missing = [name for name in study["cells"] if name not in there]
    if missing:
        raise StudyError(
            f"{folder}: {len(missing):,} of {len(study['cells']):,} cells are missing. Run the study to its end first."
        )
    entries = {"study.json": folder / "study.json"}
    entries |= {f"cells/{name}.parquet": there[name] for name in study["cells"]}
    named = (path for path in sorted((folder / "files").glob("*/*")) if path.name != "__pycache__")  # Python's own
    entries |= {path.relative_to(folder).as_posix(): path for path in named}
    made_by: dict[str, list[str]] = {}
    hashes = {}
    for name, path in sorted(entries.items()):
        content = _read(path)
        hashes[name] = hashlib.sha256(content).hexdigest()
        if name.startswith("cells/"):
            told = read_provenance(content)
            for key in _TOLD:
                made_by[key] = sorted({*made_by.get(key, ()), str(told[key])})
    about = _About(
        format="sidelong-pack",
        version=VERSION,
        sidelong=__version__,
        commit=commit(),
        made_by=made_by,
        entries=hashes,
        sha256=_hash(hashes),
    )
    with replacing(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "pack.json", about.model_dump_json(indent=1).encode())
        for name, path in sorted(entries.items()):
            _add(archive, name, _read(path))
    return about.sha256


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name)  # with the date 1980-01-01, so that the same content gives the same bytes
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error


def _hash(hashes: dict[str, str]) -> str:
    return hashlib.sha256(canonical(hashes).encode()).hexdigest()


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Unpack an archive into a temporary folder; give the folder and what pack.json tells.

    Raises:
        StudyError: it is no pack, is newer than this program, or an entry is altered, too large or not of a pack.
    """
    with tempfile.TemporaryDirectory(prefix="sidelong-") as name:
        try:
            with zipfile.ZipFile(path) as archive:
                about = _extract(archive, path, Path(name))
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise StudyError(f"{path}: this pack is truncated or altered: {error}.") from error
        yield Path(name), about


def _extract(archive: zipfile.ZipFile, path: Path, folder: Path) -> dict[str, Any]:
    listed = archive.infolist()
    names = [info.filename for info in listed]
    strange = [name for name in names if not _ENTRY.fullmatch(name) or Path(name).name in {".", ".."}]
    if strange:
        raise StudyError(f"{path}: this is no pack of a study: it has the entry {strange[0]!r}.")
    if {info.compress_type for info in listed} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise StudyError(
            f"{path}: this is no pack of a study: its entries are compressed in another way than packs are."
        )
    if len(set(names)) < len(names) or len(names) > _MAX_ENTRIES:
        raise StudyError(f"{path}: this is no pack of a study: it has entries twice, or more than {_MAX_ENTRIES:,}.")
    size = sum(info.file_size for info in listed)
    if size > MAX_BYTES:
        raise StudyError(f"{path}: a pack has at most {MAX_BYTES:,} bytes when it is unpacked, and this one {size:,}.")
    about = _about(archive, path)
    if set(names) - {"pack.json"} != about["entries"].keys():
        raise StudyError(f"{path}: this pack is altered: it has other entries than its pack.json lists.")
    for info in listed:
        content = archive.read(info)  # reads no more than `file_size` bytes, whatever the archive holds
        if info.filename != "pack.json":
            if hashlib.sha256(content).hexdigest() != about["entries"][info.filename]:
                raise StudyError(f"{path}: this pack is altered: {info.filename} has another hash than it lists.")
            target = folder / info.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return about


def _about(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """Return what pack.json tells, of an archive whose entries have the right names."""
    try:
        about = _About.model_validate_json(archive.read("pack.json"))
    except (KeyError, ValidationError) as error:
        raise StudyError(f"{path}: this is no pack of a study: `sidelong pack FOLDER` makes one.") from error
    if about.version > VERSION:
        raise StudyError(f"{path}: this pack has version {about.version}, and this sidelong reads {VERSION}. {NEWER}")
    if about.sha256 != _hash(about.entries):
        raise StudyError(f"{path}: this pack is altered: its content hash is not that of its entries.")
    return about.model_dump()
