// Calls tools of `antiphon serve-demo` with `antiphon call` over the bridge that INTEROP_PEER names.
//
//   tasks_of_ours.mjs ANTIPHON --http URL                    the bridge is the client's server on stdio
//   tasks_of_ours.mjs ANTIPHON --stdio COMMAND ARGUMENT...   the bridge starts the server, and is an endpoint over HTTP
//
// One line per check; the last line is `N passed, N failed`, and any failure makes the exit code 1.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { Tally, VERSION, reasonOf, run, start } from '../node.mjs';

const OLD = '2025-11-25';
const [antiphon, way, ...ours] = process.argv.slice(2);
const bridge = process.env.INTEROP_PEER;
const program = `node_modules/.bin/${bridge}`;

/** Less than a lease, which is 30 seconds: a task is handed over, and does not wait for the end of one. */
const SECONDS = 25;

/** Calls `confirm_delete`, with this answer to its question. Returns what the program prints. */
async function deleted(server, filename, answer, ...options) {
    const call = [antiphon, '--quiet', 'call', 'confirm_delete', '--args', JSON.stringify({ filename }), '--answer', answer, ...options];
    const { code, stdout, stderr } = await run([...call, ...server], { seconds: SECONDS });
    return { code, said: stdout.trim().split('\n').at(-1), stderr };
}

function same({ code, said, stderr }, wanted) {
    if (code !== 0 || said !== wanted) throw new Error(`exit code ${code}: ${said} ${stderr.slice(-300)}`);
}

const TASKS = {
    'task: its question is accepted': async server => {
        same(await deleted(server, 'q1.txt', 'confirm.value=true'), 'Deleted q1.txt.');
        same(await deleted(server, 'q1.txt', 'confirm.value=true'), 'There is no q1.txt.');
    },
    'task: its question is declined': async server => same(await deleted(server, 'q2.txt', 'confirm=decline'), 'Kept q2.txt.'),
};

/** supergateway keeps a session of its own for a request before `initialize`, and answers questions of the server itself. */
const OLD_TASKS = {
    'task: its question is accepted': {
        absent: 'it answers questions of the server with `Method not found`',
        check: async server => {
            const { code, stderr } = await deleted(server, 'q1.txt', '1.value=true', '--mode', 'legacy');
            if (code === 0 || !stderr.includes('Method not found')) throw new Error(`exit code ${code}: ${stderr.slice(-300)}`);
        },
    },
};

async function freePort() {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
}

/** Starts supergateway in front of our server, and returns its URL. */
async function endpoint() {
    const port = await freePort();
    const words = ours.map(word => `'${word}'`).join(' ');
    const gateway = start([program, '--stdio', words, '--outputTransport', 'streamableHttp', '--port', `${port}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const piece of gateway.stdout.setEncoding('utf8')) if (piece.includes('Listening on port')) break;
    gateway.stdout.resume();
    return { url: `http://127.0.0.1:${port}/mcp`, stop: () => gateway.kill() };
}

const tally = new Tally('client of ours');
const { url, stop } = way === '--http' ? { url: ours[0], stop: () => {} } : await endpoint();
const is_old = way === '--http' && bridge === 'supergateway';
const over = bridge === 'mcp-remote' ? ['--', program, url, '--allow-http'] : ['--', program, '--streamableHttp', url, '--logLevel', 'none'];
const server = way === '--http' ? over : [url];
for (const [name, run] of Object.entries(is_old ? OLD_TASKS : TASKS)) {
    const { check, absent } = typeof run === 'function' ? { check: run } : run;
    const outcome = { label: way.slice(2), transport: way.slice(2), name, absent, era: is_old ? OLD : VERSION };
    try {
        await check(server);
    } catch (error) {
        outcome.fault = reasonOf(error);
    }
    tally.add(outcome);
}
stop();
tally.end();
process.exit();
