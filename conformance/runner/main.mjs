// Runs every scenario of the suite by its own call, and tells what became of them. The revisions run side by side, the
// scenarios of each one after another.

import { spawn } from "node:child_process";
import { mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { judge } from "./judge.mjs";
import { REVISIONS, scenarios, WITHOUT_REQUIREMENTS } from "./scenarios.mjs";

const SCENARIO_TIME = 60_000;
/** How long the server may take to start, and to stop. */
const START_TIME = 10_000;
const here = resolve(import.meta.dirname, "..");
const suite = join(here, ".node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
const results = join(here, ".results");

const { values: options } = parseArgs({
    options: {
        programs: { type: "string", default: "../target/debug" },
        only: { type: "string", default: "" },
        revision: { type: "string", multiple: true, default: REVISIONS },
        "server-url": { type: "string" },
        client: { type: "string" },
    },
});

/** What is to be gone when this process is: process ids, negative for groups. */
const running = new Set();
process.on("exit", () => running.forEach((id) => process.kill(id, "SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(2));

rmSync(results, { recursive: true, force: true });
mkdirSync(results);
const lists = {};
for (const revision of options.revision)
    lists[revision] = {
        required: WITHOUT_REQUIREMENTS.includes(revision) ? "" : await list("--requirements", revision),
        known: await list("--spec-version", revision),
    };
const client = options.client ?? join(options.programs, "conformance-client");
// With a list of expected failures, even an empty one, the suite itself counts the warnings of servers.
const noExcuses = join(results, "no-expected-failures.yml");
writeFileSync(noExcuses, "server: []\nclient: []\n");
const ends = await Promise.all(options.revision.map(revisionRun));
const rows = ends.flatMap(({ rows }) => rows);
report(ends.every(({ stopped }) => stopped));

/** Every scenario of a revision, with a server for them: those of another revision neither see nor change its state. */
async function revisionRun(revision) {
    const given = options["server-url"] && { url: options["server-url"], stop: async () => true };
    const none = { url: "", stop: async () => true };
    const servers = chosen(revision, "server");
    const server = given || (servers.length > 0 ? await startServer(revision) : none);
    const rows = [];
    for (const scenario of servers)
        rows.push(await run(revision, "server", scenario, ["--url", server.url, "--expected-failures", noExcuses]));
    for (const scenario of chosen(revision, "client"))
        rows.push(await run(revision, "client", scenario, ["--command", client]));
    return { rows, stopped: await server.stop() };
}

function chosen(revision, side) {
    const { required, known } = lists[revision];
    return scenarios(revision, required, known, side).filter((name) => name.includes(options.only));
}

async function list(flag, revision) {
    const { exit, output } = await call(["list", flag, revision]);
    if (exit !== 0) throw new Error(`the suite cannot list its scenarios:\n${output}`);
    return output;
}

/** One scenario; a line as soon as it is known what became of it. */
async function run(revision, side, scenario, options) {
    const folder = join(results, revision, side, scenario);
    mkdirSync(folder, { recursive: true });
    const began = Date.now();
    const { exit, output, timedOut } = await call(
        [side, "--scenario", scenario, "--spec-version", revision, "--force", "-o", folder, ...options],
        SCENARIO_TIME,
    );
    writeFileSync(join(folder, "suite.txt"), output);
    const judged = judge({ revision, side, scenario, folder, exit, timedOut });
    const row = { revision, side, scenario, ms: Date.now() - began, ...judged };
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
        running.add(-child.pid);
        child.stdout.on("data", (part) => (output += part));
        child.stderr.on("data", (part) => (output += part));
        const late = setTimeout(() => {
            timedOut = true;
            process.kill(-child.pid, "SIGKILL");
        }, time);
        child.on("error", fail);
        child.on("close", (exit) => {
            clearTimeout(late);
            running.delete(-child.pid);
            done({ exit, output, timedOut });
        });
    });
}

/** Our server, once it has said where it is. Its log goes to a file. */
async function startServer(revision) {
    const log = openSync(join(results, `server-${revision}.log`), "w");
    const child = spawn(join(options.programs, "conformance-server"), [], { stdio: ["ignore", "pipe", log] });
    running.add(child.pid);
    const ended = new Promise((done, fail) => child.on("error", fail).on("exit", done));
    ended.finally(() => running.delete(child.pid)).catch(() => {});
    const said = new Promise((done) => createInterface({ input: child.stdout }).once("line", done));
    const url = await within(START_TIME, Promise.race([said, ended]));
    if (typeof url !== "string") throw new Error("the server did not say where it is; see .results/server-*.log");
    const stop = async () => {
        child.kill("SIGINT");
        return (await within(START_TIME, ended)) === 0;
    };
    return { url, stop };
}

/** What comes of it, or nothing if that takes longer. */
async function within(time, promise) {
    const late = new AbortController();
    const nothing = sleep(time, undefined, { signal: late.signal }).catch(() => undefined);
    return Promise.race([promise, nothing]).finally(() => late.abort());
}

function line({ revision, side, scenario, counts, faults, ms }) {
    const { SUCCESS, FAILURE, WARNING, SKIPPED } = counts;
    const checks = `${SUCCESS} ok, ${FAILURE} failed, ${WARNING} warned, ${SKIPPED} skipped`;
    return `${faults.length === 0 ? "ok    " : "FAILED"} ${revision} ${side} ${scenario.padEnd(48)} ${checks} (${ms} ms)`;
}

function report(stoppedWell) {
    const red = rows.filter(({ faults }) => faults.length > 0);
    const table = rows.map(({ revision, side, scenario, counts, faults }) => {
        const { SUCCESS, FAILURE, WARNING, SKIPPED } = counts;
        const result = faults.length === 0 ? "ok" : "**FAILED**";
        return `| ${[revision, side, scenario, SUCCESS, FAILURE, WARNING, SKIPPED, result].join(" | ")} |`;
    });
    const sums = options.revision.flatMap((revision) => ["server", "client"].map((side) => sum(revision, side)));
    const head = "| revision | side | scenario | success | failure | warning | skipped | result |\n|---|---|---|---|---|---|---|---|";
    const faults = red.flatMap((row) => row.faults.map((fault) => `- ${row.revision} ${row.side} ${row.scenario}: ${fault}`));
    writeFileSync(join(results, "summary.md"), `${[...sums, "", head, ...table, "", ...faults].join("\n").trimEnd()}\n`);
    writeFileSync(join(results, "summary.json"), `${JSON.stringify({ revisions: options.revision, rows }, null, 2)}\n`);
    if (!stoppedWell) console.log("FAILED a server did not stop when it was told to");
    console.log(`\n${sums.join("\n")}\nSee ${join(results, "summary.md")}.`);
    process.exitCode = red.length === 0 && rows.length > 0 && stoppedWell ? 0 : 1;
    if (!stoppedWell) process.exit();
}

function sum(revision, side) {
    const of = rows.filter((row) => row.revision === revision && row.side === side);
    const green = of.filter(({ faults }) => faults.length === 0).length;
    return `* ${revision}, ${side}: ${green} of ${of.length} scenarios are green.`;
}
