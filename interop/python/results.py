"""What came of a case, for ../table.py. It needs no SDK: the clients of both generations use it."""

import json
import os


def record(direction: str, transport: str, era: str, case: str, fault: str = "") -> None:
    """Appends a line to the file that INTEROP_RESULTS names, if it is set."""
    if not (path := os.environ.get("INTEROP_RESULTS")):
        return
    line = {
        "peer": os.environ.get("INTEROP_PEER", ""),
        "version": os.environ.get("INTEROP_VERSION", ""),
        "direction": direction,
        "transport": transport,
        "era": era,
        "case": case,
        "outcome": "fail" if fault else "pass",
        "note": fault,
    }
    with open(path, "a") as results:
        results.write(json.dumps(line) + "\n")
