"""The files of the repository, each read once, the commands that rules read, and the table of rules.

A rule is a function that takes a `Tree` and yields its faults. Each one has plants: changes of the tree that it must find.
"""
import functools
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

RULES = {}


class Failed(Exception):
    """A command that a rule reads has failed."""


@dataclass(frozen=True)
class Plant:
    """A violation for the self-test: changes of files, or of what a command prints."""

    # A part of the fault that the rule must report, and does not report without the plant. None: the rule must accept the change.
    fault: str | None
    # For each path its new text, or a function of its old one.
    files: dict = field(default_factory=dict)
    # For the beginning of a command a function of its output.
    outputs: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    name: str
    check: object
    plants: tuple
    # A rule of prose is reported, and fails nothing.
    warns: bool


def rule(name, *plants, warns=False):
    def add(check):
        RULES[name] = Rule(name, check, plants, warns)
        return check
    return add


def append(text):
    return lambda old: old + text


def replace(old, new, count=1):
    def change(text):
        if old not in text:
            raise AssertionError(f"a plant replaces `{old}`, which is not there")
        return text.replace(old, new, count)
    return change


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        # Where cargo runs: in the self-test a copy.
        self.place = self.root
        # What a command's name is replaced by.
        self.program = lambda name: name
        self.outputs, self.commands = {}, []
        # What a rule has made of the files other than documents.
        self.memo = {}
        self._texts, self._results = {}, {}
        self._set_files(self._listed())

    def _listed(self):
        if (self.root / ".git").exists():
            listed = self.run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        else:  # An unpacked archive.
            parts = (path.relative_to(self.root).parts for path in self.root.rglob("*"))
            listed = ["/".join(part) for part in parts if not {"target", "node_modules", ".venv", ".node"} & set(part)]
        # A tracked file may be deleted in the work tree.
        return sorted(path for path in set(listed) if path and (self.root / path).is_file())

    def _set_files(self, files):
        self.files, self.file_set = files, set(files)
        self.folders = {str(folder) for path in files for folder in pathlib.PurePosixPath(path).parents}

    def changed(self, files):
        """The same tree with other texts of some files; what is read is shared."""
        tree = Tree.__new__(Tree)
        tree.__dict__.update(self.__dict__)
        tree._texts = {**self._texts, **files}
        tree.commands, tree.outputs = [], {}
        tree.memo = self.memo if all(path.endswith(".md") for path in files) else {}
        # What a command reads from other files stays as it is.
        tree._results = {} if any("Cargo" in path for path in files) else self._results
        if not files.keys() <= self.file_set:
            tree._set_files(sorted(self.file_set | files.keys()))
        return tree

    def text(self, path):
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(errors="replace")
        return self._texts[path]

    def exists(self, path):
        return path in self.file_set or path in self.folders

    def glob(self, *patterns):
        """The files of these patterns: `*` stands for a part of a name, `**/` for any number of folders."""
        either = _expression(patterns)
        return [path for path in self.files if either.fullmatch(path)]

    def run(self, *words):
        """The output of a command, which must succeed."""
        self.commands.append(words)
        if words not in self._results:
            folder = self.root if words[0] == "git" else self.place
            ended = subprocess.run([self.program(words[0]), *words[1:]], cwd=folder, capture_output=True, text=True)
            if ended.returncode != 0:
                raise Failed(f"`{' '.join(words)}` ended with {ended.returncode}: {ended.stderr.strip()[-800:]}")
            self._results[words] = ended.stdout
        output = self._results[words]
        for beginning, change in self.outputs.items():
            if " ".join(words).startswith(beginning):
                output = change(output)
        return output

    def cargo(self, *words):
        return self.run("cargo", *words, "--locked")

    def crates_of(self, *words):
        """The crates that `cargo tree` prints, as `name v1.2.3`."""
        lines = self.cargo("tree", "--prefix", "none", *words).splitlines()
        return {re.sub(r" \(.*", "", line) for line in lines if line}


@functools.cache
def _expression(patterns):
    def one(pattern):
        return re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
    return re.compile("|".join(map(one, patterns)))


RUST = tuple(f"{folder}/**/*.rs" for folder in
             ("crates", "examples", "bench", "conformance", "drill", "interop", "fuzz", "loom"))


@functools.lru_cache(None)
def code(text):
    """The source before its tests, which begin with the first `#[cfg(test)]` of a line."""
    return re.split(r"(?m)^#\[cfg\(test\)\]", text, maxsplit=1)[0]


@functools.lru_cache(None)
def bare(text):
    """Code without comments, so that a comment may speak of what the code must not do."""
    return re.sub(r"//.*", "", code(text))


def section(text, heading):
    """The part of a document below a heading of the second level."""
    return re.search(rf"(?ms)^{re.escape(heading)}$(.*?)(?=^## |\Z)", text).group(1)
