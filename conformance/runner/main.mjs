// Runs every scenario of the suite by its own call, one after another, and tells what became of them.

import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { judge } from "./judge.mjs";
import { REVISION, scenarios } from "./scenarios.mjs";

const SCENARIO_TIME = 60_000;
const here = resolve(import.meta.dirname, "..");
const suite = join(here, ".node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
const results = join(here, ".results");

const { values: options } = parseArgs({
    options: {
        programs: { type: "string", default: "../target/debug" },
        only: { type: "string", default: "" },
        "server-url": { type: "string" },
        client: { type: "string" },
    },
});

rmSync(results, { recursive: true, force: true });
mkdirSync(results);
const required = await list("--requirements");
const known = await list("--spec-version");
const server = options["server-url"] ? { url: options["server-url"], stop() {} } : await startServer();
const rows = [];
try {
    const client = options.client ?? join(options.programs, "conformance-client");
    const no_excuses = join(results, "no-expected-failures.yml");
    // With a list of expected failures, even an empty one, the suite itself counts warnings of servers.
    writeFileSync(no_excuses, "server: []\nclient: []\n");
    for (const scenario of chosen("server"))
        rows.push(await run("server", scenario, ["--url", server.url, "--expected-failures", no_excuses]));
    for (const scenario of chosen("client")) rows.push(await run("client", scenario, ["--command", client]));
} finally {
    server.stop();
}
report();

function chosen(side) {
    return scenarios(required, known, side).filter((name) => name.includes(options.only));
}

async function list(flag) {
    const { exit, output } = await call(["list", flag, REVISION]);
    if (exit !== 0) throw new Error(`the suite cannot list its scenarios:\n${output}`);
    return output;
}

/** One scenario; a line as soon as it is known what became of it. */
async function run(side, scenario, options) {
    const folder = join(results, side, scenario);
    mkdirSync(folder, { recursive: true });
    const began = Date.now();
    const { exit, output, timedOut } = await call(
        [side, "--scenario", scenario, "--spec-version", REVISION, "--force", "-o", folder, ...options],
        SCENARIO_TIME,
    );
    writeFileSync(join(folder, "suite.txt"), output);
    const row = { side, scenario, ms: Date.now() - began, ...judge({ side, scenario, folder, exit, timedOut }) };
    console.log(line(row));
    for (const fault of row.faults) console.log(`         ${fault}`);
    return row;
}

/** Runs the suite. It and all that it started are ended if it takes too long. */
function call(args, time = 30_000) {
    return new Promise((done, fail) => {
        // A process group of its own, so that its children can be ended with it.
        const child = spawn(process.execPath, [suite, ...args], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
        let [output, timedOut] = ["", false];
        child.stdout.on("data", (part) => (output += part));
        child.stderr.on("data", (part) => (output += part));
        const late = setTimeout(() => {
            timedOut = true;
            process.kill(-child.pid, "SIGKILL");
        }, time);
        child.on("error", fail);
        child.on("close", (exit) => {
            clearTimeout(late);
            done({ exit, output, timedOut });
        });
    });
}

/** Our server, once it has said where it is. */
async function startServer() {
    const program = join(options.programs, "conformance-server");
    const child = spawn(program, [], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise((_, fail) => {
        child.on("error", fail);
        child.on("exit", (code) => fail(new Error(`the server ended with ${code} before it said where it is`)));
    });
    const first = new Promise((done) => createInterface({ input: child.stdout }).once("line", done));
    const url = await Promise.race([first, ended]);
    ended.catch(() => {});
    return { url, stop: () => child.kill("SIGINT") };
}

function line({ side, scenario, counts, faults, ms }) {
    const { SUCCESS, FAILURE, WARNING, SKIPPED } = counts;
    const checks = `${SUCCESS} ok, ${FAILURE} failed, ${WARNING} warned, ${SKIPPED} skipped`;
    return `${faults.length === 0 ? "ok    " : "FAILED"} ${side} ${scenario.padEnd(48)} ${checks} (${ms} ms)`;
}

function report() {
    const red = rows.filter(({ faults }) => faults.length > 0);
    const table = rows.map(({ side, scenario, counts, faults }) => {
        const { SUCCESS, FAILURE, WARNING, SKIPPED } = counts;
        return `| ${side} | ${scenario} | ${SUCCESS} | ${FAILURE} | ${WARNING} | ${SKIPPED} | ${faults.length === 0 ? "ok" : "**FAILED**"} |`;
    });
    const sum = `${rows.length - red.length} of ${rows.length} scenarios of ${REVISION} are green.`;
    const head = "| side | scenario | success | failure | warning | skipped | result |\n|---|---|---|---|---|---|---|";
    const faults = red.flatMap(({ side, scenario, faults }) => faults.map((fault) => `- ${side} ${scenario}: ${fault}`));
    writeFileSync(join(results, "summary.md"), `${[sum, "", head, ...table, "", ...faults].join("\n").trimEnd()}\n`);
    writeFileSync(join(results, "summary.json"), `${JSON.stringify({ revision: REVISION, rows }, null, 2)}\n`);
    console.log(`\n${sum} See ${join(results, "summary.md")}.`);
    process.exitCode = red.length === 0 && rows.length > 0 ? 0 : 1;
}
