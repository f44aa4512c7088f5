// What the peers on Node share: the tally of a run, with the lines that table.py reads, and programs as children.

import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { once } from 'node:events';

export const VERSION = '2026-07-28';

const { INTEROP_RESULTS, INTEROP_PEER = '', INTEROP_VERSION = '' } = process.env;

/** Counts and tells what comes of each check. `era` is the revision that was spoken. */
export class Tally {
    passed = 0;
    failed = 0;

    constructor(direction) {
        this.direction = direction;
    }

    add({ label, transport, name, fault, absent, era = VERSION }) {
        const outcome = fault ? 'fail' : absent ? 'not supported by peer' : 'pass';
        if (fault) this.failed += 1;
        else this.passed += 1;
        const said = { fail: 'FAILED', pass: 'ok    ', 'not supported by peer': 'absent' }[outcome];
        console.log(`${said} [${label}] ${name}${fault || absent ? `: ${fault || absent}` : ''}`);
        if (!INTEROP_RESULTS) return;
        const line = {
            peer: INTEROP_PEER,
            version: INTEROP_VERSION,
            direction: this.direction,
            transport,
            era,
            case: name,
            outcome,
            note: fault || absent || '',
        };
        appendFileSync(INTEROP_RESULTS, `${JSON.stringify(line)}\n`);
    }

    /** The last line of every script. */
    end() {
        console.log(`${this.passed} passed, ${this.failed} failed`);
        process.exitCode = this.failed || !this.passed ? 1 : 0;
    }
}

export const reasonOf = error => `${error?.name ?? 'Error'}: ${error?.message ?? error}`.replaceAll('\n', ' ').slice(0, 600);

/** What runs now ends with this script. */
const children = new Set();
process.on('SIGTERM', () => {
    for (const child of children) child.kill('SIGKILL');
    process.exit(143);
});

/** Runs a program to its end, or kills it after `seconds`. */
export async function run(command, { seconds = 60, input = '', env = process.env } = {}) {
    const child = start(command, { stdio: 'pipe', timeout: seconds * 1000, killSignal: 'SIGKILL', env });
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) child[stream].setEncoding('utf8').on('data', piece => (said[stream] += piece));
    child.stdin.on('error', () => {}); // it may be gone before it has read
    child.stdin.end(input);
    const [code, signal] = await once(child, 'close');
    return { code, signal, ...said };
}

/** Starts a program that ends with this script, or when it is killed. */
export function start([program, ...words], options) {
    const child = spawn(program, words, options);
    children.add(child);
    child.once('close', () => children.delete(child));
    return child;
}

/** Runs the jobs, so many at a time, in any order; the results are in order. */
export async function inTurns(jobs, atOnce) {
    const results = new Array(jobs.length);
    const waiting = jobs.entries();
    const worker = async () => {
        for (const [index, job] of waiting) results[index] = await job();
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return results;
}
