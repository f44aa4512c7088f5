// server_for_ours.mjs as a child process.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const PEER = [process.execPath, fileURLToPath(new URL('server_for_ours.mjs', import.meta.url))];

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
