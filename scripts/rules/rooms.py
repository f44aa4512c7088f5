"""The import graph of each program and library: no circle between files, none between folders.

The programs and libraries are the targets of every Cargo.toml: crates, their folders of tests, the drill, benchmarks, peers,
examples, fuzz targets and models of threads. The files of one are those that its `mod` lines name.

An arrow is a `use crate::..` (or an inline `crate::..` path) outside of unit tests, followed through re-exports to the file that
defines the name. A folder's mod.rs and a root file are faces, as long as they only hand names on. Folders are compared
at every level, each with the folders and files beside it.
"""
import collections
import json
import os
import re
import sys

from .tree import Plant, rule

sys.setrecursionlimit(10_000)
USE = re.compile(r"(?:^|\n)\s*(pub(?:\([^)]*\))? )?use ([^;]*);")


def split(text):
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return parts + ([part.strip()] if part.strip() else [])


def expand(tree, prefix=()):
    """The paths of a use tree."""
    brace = tree.find("{")
    if brace < 0:
        return [prefix + tuple(name.strip() for name in tree.split("::"))]
    head = tuple(name.strip() for name in tree[:brace].split("::") if name.strip())
    inner = tree[brace + 1 : tree.rindex("}")]
    return [path for part in split(inner) for path in expand(part, prefix + head)]


def code(text):
    text = re.sub(r"(?m)^#\[cfg\((?:test|all\(test, [^\n]*)\)\]\n(?:#\[[^\n]*\]\n)*(?:pub(?:\([^)]*\))? )?mod \w+;\n", "", text)
    text = re.split(r"\n#\[cfg\(test\)\]\nmod \w+", text)[0]
    return "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))


def circles(nodes, arrows):
    """Tarjan's strongly connected components of more than one node."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while component[-1:] != [node]:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    for node in nodes:
        if node not in index:
            visit(node)
    return found


MOD = re.compile(r"(?m)((?:^[ \t]*#\[[^\n]*\]\n)*)^[ \t]*(?:pub(?:\([^)]*\))? )?mod (\w+);")


def beside(path, name):
    return os.path.normpath(os.path.join(os.path.dirname(path), name))


def owner(tree, path):
    """The folder of the crate that a file belongs to."""
    folder = os.path.dirname(path)
    while folder and not tree.exists(f"{folder}/Cargo.toml"):
        folder = os.path.dirname(folder)
    return folder


class Crate:
    def __init__(self, tree, root):
        self.tree, self.faults = tree, []
        self.files, self.texts, self.faces = {}, {}, set()
        self.add("", root, True)
        self.handed_on = collections.defaultdict(dict)
        self.globs = collections.defaultdict(list)
        for module, text in self.texts.items():
            for match in USE.finditer(text):
                if match.group(1):
                    for path in expand(match.group(2)):
                        full = self.absolute(module, path)
                        if full and path[-1] == "*":
                            self.globs[module].append(full[:-1])
                        elif full:
                            self.handed_on[module][path[-1].split(" as ")[-1]] = full

    def add(self, module, path, is_face):
        """The file of a module, and those of its modules."""
        text = code(self.tree.text(path))
        self.files[module], self.texts[module] = path, text
        if is_face:
            self.faces.add(module)
        folder = "" if is_face else os.path.basename(path).removesuffix(".rs") + "/"
        for attributes, name in MOD.findall(text):
            place = re.search(r'#\[path = "([^"]+)"\]', attributes)
            found = [place[1]] if place else [f"{folder}{name}.rs", f"{folder}{name}/mod.rs"]
            found = next((file for file in (beside(path, one) for one in found) if self.tree.exists(file)), None)
            if found is None:
                self.faults.append(f"{path} names the module {name}, which has no file")
            # The source of another crate, compiled into a model of threads, has what it imports from the module around it.
            elif owner(self.tree, found) in (owner(self.tree, path), ""):
                self.add(f"{module}::{name}".removeprefix("::"), found, found.endswith("/mod.rs"))

    def absolute(self, module, path):
        here = module.split("::") if module else []
        if path[0] == "crate":
            return list(path[1:])
        if path[0] == "self":
            return here + list(path[1:])
        if path[0] == "super":
            ups = len([name for name in path if name == "super"])
            return here[: len(here) - ups] + list(path[ups:])
        child = "::".join(here + [path[0]])
        return here + list(path) if child in self.files else None

    def resolve(self, path, depth=0):
        path = [name.split(" as ")[0] for name in path if name != "self"]
        for length in range(len(path), -1, -1):
            module = "::".join(path[:length])
            if module in self.files:
                break
        rest = path[length:]
        if rest and rest[0] in self.handed_on[module] and depth < 8:
            return self.resolve(self.handed_on[module][rest[0]] + rest[1:], depth + 1)
        for glob in self.globs[module]:
            target = self.resolve(glob + rest, depth + 1) if rest and depth < 8 else None
            if target in self.files and re.search(rf"\b{rest[0]}\b", self.texts[target]):
                return target
        return module

    def arrows(self):
        arrows = collections.defaultdict(set)
        for module, text in self.texts.items():
            paths = [path for match in USE.finditer(text) if not match.group(1) for path in expand(match.group(2))]
            body = USE.sub("\n", text)
            paths += [("crate", *inline.split("::")) for inline in re.findall(r"(?<![\w:])crate::((?:\w+::)*\w+)", body)]
            paths += [tuple(inline.split("::")) for inline in re.findall(r"(?<![\w:])((?:[a-z_][a-z0-9_]*::)+\w+)", body)]
            for path in paths:
                full = self.absolute(module, path)
                if full is None:
                    continue
                target = self.resolve(full)
                # A face that only hands names on is no room.
                if target != module and target in self.files and not self.is_plain_face(target):
                    arrows[module].add(target)
        return arrows

    def is_plain_face(self, module):
        return module in self.faces and not re.search(r"\b(fn|struct|enum|impl|trait|macro_rules!)\b", self.texts[module])


def named(circle):
    return ", ".join(module or "the root of the crate" for module in circle)


def check(tree, source):
    """The files of a program or library, by its root file, and its circles."""
    crate = Crate(tree, source)
    arrows = {module: targets for module, targets in crate.arrows().items() if not crate.is_plain_face(module)}
    faults = crate.faults + [f"{source}: a circle of files: {named(circle)}" for circle in circles(list(arrows), arrows)]
    depth = max((module.count("::") + 1 for module in crate.files), default=1)
    for level in range(1, depth + 1):
        rooms = collections.defaultdict(set)
        for module, targets in arrows.items():
            here = module.split("::")
            for target in targets:
                there = target.split("::")
                # Folders (and files) that share their parent at this level.
                if here[: level - 1] != there[: level - 1] or len(here) < level or len(there) < level:
                    continue
                one, other = "::".join(here[:level]), "::".join(there[:level])
                if one != other:
                    rooms[one].add(other)
        for circle in circles(list(rooms), rooms):
            fault = f"{source}: a circle of folders: {named(circle)}"
            if fault not in faults:
                faults.append(fault)
    return {path: tree.text(path) for path in crate.files.values()}, faults


def roots(tree):
    """The root file of each target of each workspace."""
    seen = set()
    for manifest in sorted(tree.glob("**/Cargo.toml"), key=lambda path: path.count("/")):
        if manifest in seen:
            continue
        metadata = json.loads(tree.run("cargo", "metadata", "--no-deps", "--format-version", "1", "--manifest-path", manifest))
        for package in metadata["packages"]:
            seen.add(os.path.relpath(package["manifest_path"], tree.place))
            for target in package["targets"]:
                yield os.path.relpath(target["src_path"], tree.place)


SEEN = {}
ENGINE = "crates/antiphon-engine/src"


def planted(**files):
    """A plant: modules of the engine, by their paths without the ending."""
    texts = {f"{ENGINE}/{path.replace('__', '/')}.rs": text for path, text in files.items()}
    names = {path.split("__")[0] for path in files}
    return {**texts, f"{ENGINE}/lib.rs": lambda old: "".join(f"mod {name};\n" for name in sorted(names)) + old}


@rule("rooms",
      Plant(f"{ENGINE}/lib.rs: a circle of files: planted_a, planted_b",
            planted(planted_a="use crate::planted_b::B;\nfn a() {}\n", planted_b="use super::planted_a::a;\nstruct B;\n")),
      Plant(f"{ENGINE}/lib.rs: a circle of folders: planted_a, planted_b",
            planted(planted_a__mod="mod one;\nmod two;\n", planted_a__one="use crate::planted_b::B;\n", planted_a__two="fn a() {}\n",
                    planted_b="use crate::planted_a::two::a;\nstruct B;\n")),
      Plant(f"{ENGINE}/lib.rs names the module planted_c", {f"{ENGINE}/lib.rs": lambda old: "mod planted_c;\n" + old}),
      Plant(None, planted(planted_a="use crate::planted_b::B;\nfn a() {}\n", planted_b="struct B;\n")))
def rooms(tree):
    for root in sorted(set(roots(tree))):
        # The faults are those of before if the files are.
        if root not in SEEN or any(tree.text(path) is not text for path, text in SEEN[root][0].items()):
            SEEN[root] = check(tree, root)
        yield from SEEN[root][1]
