// Loaded before the suite's tier check, whose questions about the repository it answers from this folder: files are those of the
// work tree, and there are no issues, labels or releases. Nothing goes to the network but to this machine.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const send = globalThis.fetch;

globalThis.fetch = async (request, options) => {
    const url = new URL(request?.url ?? request);
    if (url.host !== "api.github.com") return send(request, options);
    const file = /^\/repos\/[^/]+\/[^/]+\/contents\/(.+)$/.exec(url.pathname)?.[1];
    const found = file && existsSync(join(root, decodeURIComponent(file)));
    const isList = /\/(issues|labels|releases|tags)$/.test(url.pathname);
    return Response.json(isList ? [] : {}, { status: isList || found ? 200 : 404 });
};
