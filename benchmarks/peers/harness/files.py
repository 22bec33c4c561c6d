"""The networks' files in the work folder: written by the environments, kept for the next run."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import ROOT
from benchmarks.command_line import ProcessError, output_of
from benchmarks.peers.harness.catalogue import KINDS, Environment, FileKind, Subject

FORMATS: Final = ROOT / "benchmarks" / "peers" / "formats"
EXPORT_TIMEOUT_S: Final = 1800


class ExportError(Exception):
    """A file cannot be written; the text is the reason that a table gives for it."""


@dataclass(frozen=True)
class Files:
    """Where files are, and who writes them: the work folder, and each environment's interpreter.

    ``float_weights`` of .pbit files of ``models/networks`` are "f16" or "f32".
    """

    work: Path
    pythons: Mapping[Environment, str]
    float_weights: str

    def folder(self, subject: Subject) -> Path:
        """Of a network."""
        return self.work / subject.name

    def path(self, subject: Subject, kind: str) -> Path:
        """Of a file, whether it is there or not."""
        return self.folder(subject) / KINDS[kind].file

    def size_bytes(self, subject: Subject, kind: str) -> int:
        """Of a file and its companion."""
        names = [KINDS[kind].file, KINDS[kind].companion]
        return sum((self.folder(subject) / name).stat().st_size for name in names if name)

    def prepare(self, subject: Subject, kinds: Iterable[FileKind]) -> dict[str, str]:
        """Writes files that are not there yet; returns by kind why one could not be written."""
        missing: dict[str, str] = {}
        for kind in kinds:
            begin, outcome = time.monotonic(), "written"
            try:
                self.ensure(subject, kind)
            except ExportError as error:
                missing[kind.name] = outcome = str(error)
            seconds = time.monotonic() - begin
            if kind.name in missing or seconds > 1:
                line = f"{subject.title}: {kind.file}, {seconds:.0f} s: {outcome}"
                print(line, file=sys.stderr, flush=True)
        return missing

    def ensure(self, subject: Subject, kind: FileKind) -> None:
        """Writes a file, unless it is there and was written by the same sources."""
        stamp = self.path(subject, kind.name).with_suffix(f".{kind.name}.stamp")
        sources = self._sources(subject, kind)
        if stamp.is_file() and stamp.read_text() == sources:
            return
        for need in kind.needs:
            if not self.path(subject, need).is_file():
                raise ExportError(f"{KINDS[need].file}, from which it is made, is not there")
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        self._export(subject, kind)
        stamp.write_text(sources)

    def _export(self, subject: Subject, kind: FileKind) -> None:
        python = self.pythons[kind.environment]
        folder = str(self.folder(subject).resolve())
        command = [python, "-m", "benchmarks.peers.formats.export", kind.name, subject.name, folder]
        command += ["--float-weights", self.float_weights]
        command += ["--no-zoo"] if subject.zoo is None else []
        try:
            output_of(command, EXPORT_TIMEOUT_S)
        except ProcessError as error:
            raise ExportError(f"writing {kind.file} failed: {error}") from None

    def _sources(self, subject: Subject, kind: FileKind) -> str:
        """What the file depends on: a hash of the code that makes it, and the options.

        The files that it is made from count by their code: a kind's ``needs`` are written first.
        """
        import phonebit.converter
        import phonebit.models.networks

        files = [ROOT / "tests" / "support" / "larq_networks.py"]
        folders = [FORMATS, Path(phonebit.models.networks.__file__).parent]
        is_ours = kind.name.startswith("pbit")
        if is_ours or (subject.zoo is not None and kind.name == "openvino_binary"):
            folders.append(Path(phonebit.converter.__file__).parent)
        files += [path for folder in folders for path in folder.rglob("*.py")]
        options = self.float_weights if kind.name == "pbit" else ""
        return f"{_hash(files)} {options} {subject.zoo or ''}\n"


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
