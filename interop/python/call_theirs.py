"""Runs `antiphon call` against server_for_ours.py, over HTTP and stdio, and compares with server_for_ours.expect.json.

    call_theirs.py PATH-TO-ANTIPHON      (INTEROP_SLOW=1 for the cases that wait)

One line per check; the last line is `N passed, N failed`, and any failure makes the exit code 1.
"""

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
from typing import Any

from common import PYTHON_PEER, expectations, python_peer_over_http, record

SECONDS = 60
SECONDS_SLOW = 180
# The command line agrees to a page with its host.
HOSTS = {"checkout=accept": "pay.example.com"}
NO_RESULT = (2, 4)  # usage, protocol: what stdout holds then is not laid down


def command_for(antiphon: str, case: dict[str, Any], server: list[str]) -> list[str]:
    given = [f"{answer}@{HOSTS[answer]}" if answer in HOSTS else answer for answer in case["answers"]]
    answers = [word for answer in given for word in ("--answer", answer)]
    return [antiphon, "call", "--json", "--args", json.dumps(case["arguments"]), *answers, case["name"], *server]


def faults(case: dict[str, Any], done: subprocess.CompletedProcess[str]) -> list[str]:
    cli, outcome, found = case["cli"], case["outcome"], []
    codes = cli.get("exit_any") or [cli["exit"]]
    if done.returncode not in codes:
        found.append(f"exit code {done.returncode}, wanted {codes}")
    said = done.stdout + done.stderr
    found += [f"{name!r} is not mentioned" for name in cli.get("names", []) if name not in said]
    if "names_any" in cli and not any(name in said for name in cli["names_any"]):
        found.append(f"none of {cli['names_any']} is mentioned")
    if found or done.returncode in NO_RESULT or "exit_any" in cli:
        return found
    try:
        reply = json.loads(done.stdout)
    except ValueError:
        return ["stdout is not JSON"]
    if reply.get("status") != cli["status"]:
        found.append(f"status {reply.get('status')!r}, wanted {cli['status']!r}")
    if reply.get("rounds") != case["rounds"]:
        found.append(f"rounds {reply.get('rounds')!r}, wanted {case['rounds']}")
    if cli["status"] != "pending":
        found += result_faults(case, outcome, reply.get("result") or {})
    return found


def result_faults(case: dict[str, Any], outcome: dict[str, Any], result: dict[str, Any]) -> list[str]:
    found = []
    text = (result.get("content") or [{}])[0].get("text") or ""
    wanted = outcome.get("text", outcome.get("tool_error", outcome.get("tool_error_begins")))
    if text != wanted and not ("tool_error_begins" in outcome and text.startswith(wanted)):
        found.append(f"text {text!r}, wanted {wanted!r}")
    if bool(result.get("isError")) != ("text" not in outcome):
        found.append(f"isError is {result.get('isError')!r}")
    if "structured" in case and result.get("structuredContent") != case["structured"]:
        found.append(f"structuredContent {result.get('structuredContent')!r}, wanted {case['structured']!r}")
    return found


def play(antiphon: str, case: dict[str, Any], server: list[str]) -> list[str]:
    command = command_for(antiphon, case, server)
    limit = SECONDS_SLOW if case.get("slow") else SECONDS
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return [f"no end after {limit} s"]
    found = faults(case, done)
    if found:
        found += [f"stdout: {done.stdout.strip()[:400]}", f"stderr: {done.stderr.strip()[-400:]}"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs `antiphon call` against server_for_ours.py")
    parser.add_argument("antiphon")
    parser.add_argument("--only", metavar="WORD", help="only the cases whose id holds WORD")
    options = parser.parse_args()
    cases = [case for case in expectations() if case["kind"] == "tool" and (options.only or "") in case["id"]]
    cases = [case for case in cases if "later" not in case]
    if not os.environ.get("INTEROP_SLOW"):
        cases = [case for case in cases if not case.get("slow")]
    passed = failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends with us
    with python_peer_over_http() as url, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 4) as pool:
        servers = {"http": [url], "stdio": ["--", *PYTHON_PEER, "--stdio"]}
        runs = [
            (way, case["id"], pool.submit(play, options.antiphon, case, server))
            for way, server in servers.items()
            for case in cases
        ]
        try:
            for way, case_id, run in runs:
                label, found = f"[call, {way}] {case_id}", run.result()
                record("server for ours", way, case_id, "; ".join(found))
                if found:
                    failed += 1
                    print(f"FAILED {label}: {'; '.join(found)}", flush=True)
                else:
                    passed += 1
                    print(f"ok     {label}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
