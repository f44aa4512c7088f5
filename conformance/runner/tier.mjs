// The suite's own tier check of the two revisions that count: all required scenarios by its score, and the files of its policies.
// What only the host of the repository knows (labels, issues, releases) is not judged here.

import { spawn, spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const REVISIONS = "2026-07-28,2025-11-25";
const TIME = 300_000;
const POLICIES = ["CHANGELOG", "SECURITY", "CONTRIBUTING", "DEPENDENCY_POLICY", "ROADMAP", "VERSIONING"].map((name) => `${name}.md`);
const suite = resolve(import.meta.dirname, "../.node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
const { values: options } = parseArgs({ options: { programs: { type: "string", default: "../target/debug" } } });

const server = spawn(join(options.programs, "conformance-server"), [], { stdio: ["ignore", "pipe", "ignore"] });
process.on("exit", () => server.kill("SIGKILL"));
const url = await new Promise((done, fail) => {
    createInterface({ input: server.stdout }).once("line", done);
    server.on("error", fail).on("exit", () => fail(new Error("the server has ended")));
});

const address = ["--conformance-server-url", url, "--client-cmd", join(options.programs, "conformance-client")];
const repository = ["--repo", "antiphon-mcp/antiphon", "--token", "none"];
const check = ["tier-check", ...repository, ...address, "--requirements", REVISIONS, "--output", "json"];
const github = join(import.meta.dirname, "github.mjs");
const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", github, suite, ...check], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
    timeout: TIME,
});
if (status !== 0) {
    console.error(`the tier check failed:\n${stderr}`);
    process.exit(2);
}
const { conformance, client_conformance: client, policy_signals: policies } = JSON.parse(stdout).checks;
let isGreen = true;
for (const [side, { status, passed, total, details }] of [["server", conformance], ["client", client]]) {
    isGreen &&= status === "pass" && total > 0;
    console.log(`${status.padEnd(4)} ${side}: ${passed} of ${total} required scenarios of ${REVISIONS}`);
    const red = status === "pass" ? [] : details.filter(({ passed }) => !passed);
    for (const { scenario, revision } of red) console.log(`     ${revision} ${scenario}`);
}
const missing = POLICIES.filter((name) => !policies.files[name]);
isGreen &&= missing.length === 0;
console.log(missing.length === 0 ? `pass files: ${POLICIES.join(", ")}` : `fail files: without ${missing.join(", ")}`);
process.exit(isGreen ? 0 : 1);
