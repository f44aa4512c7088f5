// What the scripts in this folder share: a run of named checks, and the lines that ../table.py reads.

import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const VERSION = '2026-07-28';
export const PEER = [process.execPath, fileURLToPath(new URL('server_for_ours.mjs', import.meta.url))];

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

/** Runs a program to its end, or kills it after `seconds`. */
export async function run([program, ...words], { seconds = 60, input = '', env = process.env } = {}) {
    const child = spawn(program, words, { stdio: 'pipe', timeout: seconds * 1000, killSignal: 'SIGKILL', env });
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) child[stream].setEncoding('utf8').on('data', piece => (said[stream] += piece));
    child.stdin.on('error', () => {}); // it may be gone before it has read
    child.stdin.end(input);
    const [code, signal] = await once(child, 'close');
    return { code, signal, ...said };
}

/** server_for_ours.mjs on a free port: its URL, and what ends it. */
export async function peerOverHttp() {
    const child = spawn(PEER[0], [...PEER.slice(1), '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const stop = () => child.kill();
    process.once('SIGTERM', () => (stop(), process.exit(143)));
    for await (const line of createInterface(child.stdout)) {
        const ready = /^listening on (http:\S+)$/.exec(line);
        if (ready) return { url: ready[1], stop };
    }
    throw new Error('server_for_ours.mjs ended before it was ready');
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
