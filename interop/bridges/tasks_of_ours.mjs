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

const call = (filename, answer) => [antiphon, 'call', 'confirm_delete', '--args', JSON.stringify({ filename }), '--answer', answer];

/** Checks the last line that the call prints. */
async function check(server, filename, answer, wanted) {
    const { code, stdout, stderr } = await run([...call(filename, answer), ...server], { seconds: SECONDS });
    const said = stdout.trim().split('\n').at(-1);
    if (code !== 0 || said !== wanted) throw new Error(`exit code ${code}: ${said} ${stderr.slice(-300)}`);
}

const TASKS = {
    'task: its question is accepted': server => check(server, 'q1.txt', 'confirm.value=true', 'Deleted q1.txt.'),
    'task: its question is declined': server => check(server, 'q2.txt', 'confirm=decline', 'Kept q2.txt.'),
};

/** supergateway opens a session of its own for a request before `initialize`, and answers questions of the server itself. */
const OLD_TASKS = {
    'task: its question is accepted': {
        absent: 'it answers questions of the server with `Method not found`',
        check: async server => {
            const client = start([...call('q1.txt', '1.value=true'), '-v', '--mode', 'legacy', ...server], {
                stdio: ['ignore', 'ignore', 'pipe'],
                timeout: SECONDS * 1000,
            });
            let said = '';
            for await (const piece of client.stderr.setEncoding('utf8')) if ((said += piece).includes('Method not found')) break;
            // It would ask again, for a while.
            client.kill();
            if (!said.includes('The client did not answer `confirm` (error -32601)')) throw new Error(said.slice(-300));
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
    const options = { stdio: ['ignore', 'pipe', 'inherit'] };
    const gateway = start([program, '--stdio', words, '--outputTransport', 'streamableHttp', '--port', `${port}`], options);
    gateway.stdout.setEncoding('utf8');
    await new Promise((resolve, reject) => {
        gateway.stdout.on('data', piece => piece.includes('Listening on port') && resolve());
        gateway.once('close', code => reject(new Error(`supergateway ended with ${code}`)));
    });
    return { url: `http://127.0.0.1:${port}/mcp`, stop: () => gateway.kill() };
}

const tally = new Tally('client of ours');
const { url, stop } = way === '--http' ? { url: ours[0], stop: () => {} } : await endpoint();
const isOld = way === '--http' && bridge === 'supergateway';
const over = bridge === 'mcp-remote' ? [url, '--allow-http'] : ['--streamableHttp', url, '--logLevel', 'none'];
const server = way === '--http' ? ['--', program, ...over] : [url];
for (const [name, one] of Object.entries(isOld ? OLD_TASKS : TASKS)) {
    const { check, absent } = typeof one === 'function' ? { check: one } : one;
    const outcome = { label: bridge, transport: way.slice(2), name, absent, era: isOld ? OLD : VERSION };
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
