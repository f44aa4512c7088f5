// server_for_ours.mjs as a child process.

import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { start } from '../node.mjs';

export const PEER = [process.execPath, fileURLToPath(new URL('server_for_ours.mjs', import.meta.url))];

/** server_for_ours.mjs on a free port: its URL, and what ends it. */
export async function peerOverHttp() {
    const child = start([...PEER, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const stop = () => child.kill();
    for await (const line of createInterface(child.stdout)) {
        const ready = /^listening on (http:\S+)$/.exec(line);
        if (ready) return { url: ready[1], stop };
    }
    throw new Error('server_for_ours.mjs ended before it was ready');
}
