// What the clients of tasks share: `tasks_client_of_ours.mjs` in `typescript/` and in `typescript1/`. They have the same usage:
//
//   tasks_client_of_ours.mjs CONFORMANCE-SERVER [--only WORD]
//
// One server for each transport. One line per check; the last line is `N passed, N failed`, and any failure makes the exit
// code 1.

import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Tally, inTurns, reasonOf, start } from './node.mjs';

const PER_CHECK_MILLISECONDS = 60_000;
const CHECKS = [];

/** Adds a check. `run` gets our server on one transport. */
export const check = (name, run, { ways = ['http', 'stdio'] } = {}) => CHECKS.push({ name, run, ways });

export const accept = content => ({ action: 'accept', content });

export function same(found, wanted) {
    if (!isDeepStrictEqual(found, wanted)) throw new Error(`found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
}

/** Checks that a promise is rejected with an error of this type and code. */
export async function refused(asked, type, code) {
    const caught = await asked.then(result => new Error(`not refused: ${JSON.stringify(result)}`), error => error);
    if (!(caught instanceof type)) throw caught;
    same(caught.code, code);
}

async function within(milliseconds, promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not over after ${milliseconds} ms`)), milliseconds);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs the checks, each with an `Ours` of its own, and ends this program. `era` is the revision that they speak. */
export async function runChecks(Ours, era) {
    const { values, positionals } = parseArgs({ options: { only: { type: 'string', default: '' } }, allowPositionals: true });
    const [program] = positionals;
    const server = start([program], { stdio: ['ignore', 'pipe', 'ignore'] });
    const [url] = await once(createInterface({ input: server.stdout }), 'line');

    const tally = new Tally('client of ours');
    const chosen = CHECKS.filter(({ name }) => name.includes(values.only));
    const runs = [['http', url], ['stdio', undefined]].flatMap(([way, at]) =>
        chosen.filter(({ ways }) => ways.includes(way)).map(({ name, run }) => ({ way, at, name, run })),
    );
    // A check mostly waits between two polls.
    const outcomes = await inTurns(
        runs.map(({ way, at, name, run }) => async () => {
            const ours = new Ours(program, at);
            const outcome = { label: way, transport: way, name, era };
            try {
                await within(PER_CHECK_MILLISECONDS, run(ours));
            } catch (error) {
                outcome.fault = reasonOf(error);
            }
            await within(PER_CHECK_MILLISECONDS, ours.close()).catch(() => {});
            return outcome;
        }),
        4,
    );
    for (const outcome of outcomes) tally.add(outcome);
    server.kill();
    tally.end();
    process.exit();
}
