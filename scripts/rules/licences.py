"""Checks each crate in Cargo.lock: its licence, its source, its `rust-version`; lists crates with several versions.

Crates for all platforms are checked, among them those that only tests and examples need. The lists are in deny.toml, which
`cargo deny check licenses bans sources` reads too. Known vulnerabilities are not checked here: that needs the database of
RustSec (`cargo deny check advisories` downloads it).
"""
import json
import re
import tomllib

from .tree import Plant, replace, rule

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def permits(expression, licences):
    """Returns true if the SPDX expression is satisfied by `licences`; `/`, of old manifests, means OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def term():
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            value = either()
            position += 1
            return value
        if tokens[position : position + 1] == ["WITH"]:
            token = f"{token} WITH {tokens[position + 1]}"
            position += 2
        return token in licences

    def both():
        nonlocal position
        value = term()
        while tokens[position : position + 1] == ["AND"]:
            position += 1
            value = term() and value
        return value

    def either():
        nonlocal position
        value = both()
        while tokens[position : position + 1] == ["OR"]:
            position += 1
            value = both() or value
        return value

    return either()


def version(text):
    """Returns the parts of a `rust-version` as numbers."""
    return tuple(int(part) for part in (text.split("-")[0] + ".0.0").split(".")[:3])


def oldest_users(ours, nodes):
    """Returns, for each crate, the oldest `rust-version` of our crates that depend on it."""
    arrows = {node["id"]: node["dependencies"] for node in nodes}
    oldest = {}
    for package in ours:
        seen, waiting = set(), [package["id"]]
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                waiting += arrows.get(found, [])
        for found in seen:
            needs = version(package["rust_version"])
            oldest[found] = min(oldest.get(found, needs), needs)
    return oldest


def package(**fields):
    """A plant: one more crate in the output of cargo."""
    def change(output):
        metadata = json.loads(output)
        foreign = next(package for package in metadata["packages"] if package["source"])
        metadata["packages"].append({**foreign, "name": "planted", "version": "1.0.0", **fields})
        return json.dumps(metadata)
    return {"cargo metadata": change}


def older(output):
    metadata = json.loads(output)
    for package in metadata["packages"]:
        if package["source"] is None:
            package["rust_version"] = "1.40"
    return json.dumps(metadata)


@rule("licences", Plant("planted 1.0.0 names no licence", {}, package(license=None)),
      Plant("planted 1.0.0 has the licence GPL-3.0-only", {}, package(license="GPL-3.0-only")),
      Plant("planted 1.0.0 has the licence MIT AND GPL-3.0-only", {}, package(license="MIT AND GPL-3.0-only")),
      Plant(None, {}, package(license="MIT OR GPL-3.0-only")), Plant(None, {}, package(license="(GPL-3.0-only AND MIT)/Apache-2.0")),
      Plant("planted 1.0.0 comes from git+https://example.org", {}, package(source="git+https://example.org")),
      Plant("needs Rust 1.", {}, {"cargo metadata": older}),
      Plant("sha2 is there as", {"deny.toml": lambda old: re.sub(r"(?m)^.*sha2@.*\n", "", old)}),
      Plant("deny.toml skips planted@1.0.0", {"deny.toml": replace("skip = [\n", 'skip = [\n    { crate = "planted@1.0.0" },\n')}))
def licences(tree):
    deny = tomllib.loads(tree.text("deny.toml"))
    allowed = set(deny["licenses"]["allow"])
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in deny["licenses"].get("exceptions", [])}
    skipped = {tuple(entry["crate"].split("@")) for entry in deny["bans"]["skip"]}
    metadata = json.loads(tree.cargo("metadata", "--all-features", "--format-version", "1"))
    packages = metadata["packages"]
    ours = [package for package in packages if package["source"] is None]
    foreign = [package for package in packages if package["source"] is not None]
    oldest = oldest_users(ours, metadata["resolve"]["nodes"])
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not package["license"]:
            yield f"{name} names no licence"
        elif not permits(package["license"], allowed | exceptions.get(package["name"], set())):
            yield f"{name} has the licence {package['license']}, which deny.toml does not allow"
    for package in foreign:
        name = f"{package['name']} {package['version']}"
        if package["source"] != CRATES_IO:
            yield f"{name} comes from {package['source']}, not from crates.io"
        needed = version(package["rust_version"] or "0")
        if needed > oldest.get(package["id"], needed):
            yield f"{name} needs Rust {package['rust_version']}: lock an older version of it"
    versions = {}
    for package in foreign:
        versions.setdefault(package["name"], []).append(package["version"])
    for name, found in sorted(versions.items()):
        if len([one for one in found if (name, one) not in skipped]) > 1:
            yield f"{name} is there as {', '.join(found)}: update, or skip one in deny.toml with a reason"
    for name, one in sorted(skipped):
        if one not in versions.get(name, []) or len(versions[name]) == 1:
            yield f"deny.toml skips {name}@{one}, which is not there beside another version"
