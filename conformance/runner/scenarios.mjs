// Which scenarios are run, and what they are allowed to leave out. The suite's own lists decide; expected.json says what
// we saw in them, so that a newer suite can neither shrink nor grow without being looked at.

import { readFileSync } from "node:fs";

/** The scenarios of each revision and side, each with the number of checks that succeed in it. */
export const EXPECTED = JSON.parse(readFileSync(new URL("expected.json", import.meta.url), "utf8"));

/** In the order in which they are run. */
export const REVISIONS = Object.keys(EXPECTED);

/** What is not judged here, and why. */
const LEFT_OUT = {
    server: [/^tasks-status-notifications$/], // the suite skips all its checks
    client: [],
};

/** The suite sets no requirements for these: only the client's authorization is run, which differs in them. */
export const WITHOUT_REQUIREMENTS = ["2025-06-18", "2025-03-26"];

/** Checks that this scenario may skip: everything else that is skipped counts as red. */
export const MAY_SKIP = {
    // Methods of older revisions: nobody sends them in the one that has this scenario.
    "http-standard-headers": ["ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"],
};

/**
 * The scenarios of one side of one revision.
 * @param {string} revision one of `REVISIONS`
 * @param {string} required what `list --requirements` prints, if there are any: the frozen set, and what is reported beside it
 * @param {string} known what `list --spec-version` prints: everything of the revision but extensions
 * @param {"server" | "client"} side
 */
export function scenarios(revision, required, known, side) {
    if (WITHOUT_REQUIREMENTS.includes(revision)) {
        const ours = section(known, side).filter((name) => name.startsWith("auth/"));
        same(ours, Object.keys(EXPECTED[revision][side]), `the suite's ${side} scenarios of ${revision} are not those of expected.json`);
        return ours;
    }
    const [scored, reported] = [section(required, side), beside(required, side)];
    const ours = [...scored, ...reported].filter((name) => !leftOut(name, side));
    const all = section(known, side).filter((name) => !leftOut(name, side));
    same(ours.filter((name) => !isExtension(name)), all.filter((name) => !isExtension(name)), `the suite's two lists of ${side} scenarios of ${revision} differ`);
    same(ours, Object.keys(EXPECTED[revision][side]), `the suite's ${side} scenarios of ${revision} are not those of expected.json`);
    return ours;
}

/** The second list has no scenarios of extensions. */
const isExtension = (name) => /^tasks-|^auth\/(client-credentials-|enterprise-managed-|dpop|wif-)/.test(name);

const leftOut = (name, side) => LEFT_OUT[side].some((pattern) => pattern.test(name));

/** The names under `Server scenarios (...):` or `Client scenarios (...):`. */
function section(text, side) {
    const title = side === "server" ? "Server scenarios" : "Client scenarios";
    const lines = text.split("\n");
    const start = lines.findIndex((line) => line.startsWith(title));
    if (start < 0) throw new Error(`the suite lists no ${title}`);
    const names = [];
    for (const line of lines.slice(start + 1)) {
        const name = /^ {2}- (\S+)/.exec(line)?.[1];
        if (!name) break;
        names.push(name);
    }
    return names;
}

/** The names under `Run and reported, but never scored:` that are of this side. */
function beside(text, side) {
    const rest = text.split(/^Run and reported.*$/m)[1] ?? "";
    return [...rest.matchAll(/^ {4}- (\S+) \[(\w+)\]$/gm)].filter(([, , of]) => of === side).map(([, name]) => name);
}

function same(found, other, fault) {
    const odd = [...found.filter((name) => !other.includes(name)), ...other.filter((name) => !found.includes(name))];
    if (odd.length > 0) throw new Error(`${fault}: ${odd.join(", ")}`);
}
