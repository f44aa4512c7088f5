// The judge itself: what must be red is red. `node --test`, before every run.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { judge } from "./judge.mjs";
import { EXPECTED, MAY_SKIP, REVISIONS, scenarios } from "./scenarios.mjs";

const check = (status, name = "Name") => ({ id: "id", name, description: "what it is about", status });
const [newest, older] = REVISIONS;
const good = (scenario, side, revision = newest) => Array(EXPECTED[revision][side][scenario]).fill(check("SUCCESS"));

/** What the judge says of checks, as the suite would have written them. */
function judged(side, scenario, checks, { exit = 0, timedOut = false, said = "done\n", revision = newest } = {}) {
    const folder = mkdtempSync(join(tmpdir(), "judge-"));
    try {
        mkdirSync(join(folder, "run"));
        if (checks) writeFileSync(join(folder, "run", "checks.json"), JSON.stringify(checks));
        writeFileSync(join(folder, "run", "stdout.txt"), said);
        return judge({ revision, side, scenario, folder, exit, timedOut }).faults.length === 0 ? "green" : "red";
    } finally {
        rmSync(folder, { recursive: true });
    }
}

const server = "caching";
const client = "http-standard-headers";
/** In both revisions; the newest has a check more. */
const both = "tools-list";
const [mayBeSkipped] = MAY_SKIP[client];
for (const [what, wanted, found] of [
    ["everything succeeds", "green", () => judged("server", server, good(server, "server"))],
    ["one more succeeds", "green", () => judged("server", server, [...good(server, "server"), check("SUCCESS")])],
    ["information beside it", "green", () => judged("server", server, [...good(server, "server"), check("INFO")])],
    ["a failure", "red", () => judged("server", server, [...good(server, "server"), check("FAILURE")])],
    ["a warning", "red", () => judged("server", server, [...good(server, "server"), check("WARNING")])],
    ["a skipped check", "red", () => judged("server", server, [...good(server, "server"), check("SKIPPED")])],
    ["a status nobody knows", "red", () => judged("server", server, [...good(server, "server"), check("OK")])],
    ["one succeeds less", "red", () => judged("server", server, good(server, "server").slice(1))],
    ["nothing asserted", "red", () => judged("server", server, [])],
    ["nothing written", "red", () => judged("server", server, null)],
    ["the suite fails", "red", () => judged("server", server, good(server, "server"), { exit: 1 })],
    ["too late", "red", () => judged("server", server, good(server, "server"), { exit: null, timedOut: true })],
    ["a client that is done", "green", () => judged("client", client, good(client, "client"))],
    ["a client that failed", "red", () => judged("client", client, good(client, "client"), { said: "" })],
    ["a client that went on", "red", () => judged("client", client, good(client, "client"), { said: "done\nno\n" })],
    ["skipped with leave", "green", () => judged("client", client, [...good(client, "client"), check("SKIPPED", mayBeSkipped)])],
    ["each revision has its own number", "red", () => judged("server", both, good(both, "server", older))],
    ["which is met", "green", () => judged("server", both, good(both, "server", older), { revision: older })],
    ["skipped without", "red", () => judged("client", client, [...good(client, "client"), check("SKIPPED", "Other")])],
])
    test(what, () => assert.equal(found(), wanted));

const listed = (names) => `Server scenarios (test against a server):\n${names.map((name) => `  - ${name} [x]\n`).join("")}\n`;
const names = Object.keys(EXPECTED[newest].server);
const beside = "Run and reported, but never scored:\n  extension (1):\n    - tasks-status-notifications [server]\n";
for (const [what, required, known, wanted] of [
    ["the lists we know", listed(names) + beside, listed(names), null],
    ["a pending one", `${listed(names.slice(1))}${beside}    - ${names[0]} [server]\n`, listed(names), null],
    ["one less", listed(names.slice(1)), listed(names.slice(1)), /expected\.json/],
    ["one more", listed([...names, "new"]), listed([...names, "new"]), /expected\.json: new/],
    ["one more in one list", listed(names), listed([...names, "new"]), /differ: new/],
    ["no list", "", listed(names), /lists no Server/],
])
    test(what, () => {
        if (wanted) assert.throws(() => scenarios(newest, required, known, "server"), wanted);
        else assert.deepEqual(scenarios(newest, required, known, "server").toSorted(), names.toSorted());
    });
