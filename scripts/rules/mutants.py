"""The mutants of the drill are patches that fit the sources, and no source has a switch for one."""
import re

from .tree import RUST, Plant, replace, rule

HUNK = re.compile(r"(?m)^@@ -.*@@.*\n((?:[ +-].*\n?)*)")
FENCE, ROW = "drill/mutants/no_fence_check.patch", "crates/antiphon-store/src/row.rs"


def hunks(patch):
    """The path, and the lines before the change, of each hunk."""
    for part in re.split(r"(?m)^--- ", patch)[1:]:
        path = re.search(r"(?m)^\+\+\+ b/(.*)$", part).group(1)
        for lines in HUNK.findall(part):
            yield path, "\n".join(line[1:] for line in lines.rstrip("\n").split("\n") if not line.startswith("+"))


@rule("mutants", Plant(f"{FENCE} does not fit", {ROW: replace("row.fence == fence.number()", "row.fence == fence.planted()")}),
      Plant(f"{FENCE} does not fit", {FENCE: replace("row.fence == fence.number()", "planted", 2)}),
      Plant(f"{FENCE} changes nothing", {FENCE: "planted\n"}),
      Plant("crates/antiphon-wire/src/planted.rs has a mutant", {"crates/antiphon-wire/src/planted.rs": 'fn f() { if is_mutant("planted") {} }\n'}))
def mutants(tree):
    for patch in tree.glob("drill/mutants/*.patch"):
        if not any(True for _ in hunks(tree.text(patch))):
            yield f"{patch} changes nothing"
        for path, before in hunks(tree.text(patch)):
            if before and (not tree.exists(path) or before not in tree.text(path)):
                yield f"{patch} does not fit {path}"
    for path in tree.glob(*RUST):
        if "is_mutant(" in tree.text(path):
            yield f"{path} has a mutant: it belongs into drill/mutants"
