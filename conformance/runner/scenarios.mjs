// Which scenarios are run, and what they are allowed to leave out. The suite's own lists decide; the numbers here say
// what we saw in them, so that a newer suite can neither shrink nor grow without being looked at.

export const REVISION = "2026-07-28";

/** How many there are. */
const EXPECTED = { server: 40, client: 8 };

/** What is not judged here, and why. */
const LEFT_OUT = {
    server: [/^tasks-/], // an extension we do not have
    client: [/^auth\//], // authorization is not built yet
};

/** Checks that this scenario may skip: everything else that is skipped counts as red. */
export const MAY_SKIP = {
    // Methods of older revisions: nobody sends them in this one.
    "http-standard-headers": ["ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"],
};

/**
 * The scenarios of one side.
 * @param {string} required what `list --requirements` prints: the frozen set, and what is reported beside it
 * @param {string} known what `list --spec-version` prints: everything of the revision but extensions
 * @param {"server" | "client"} side
 */
export function scenarios(required, known, side) {
    const [scored, reported] = [section(required, side), beside(required, side)];
    const ours = [...scored, ...reported].filter((name) => !leftOut(name, side));
    const all = section(known, side).filter((name) => !leftOut(name, side));
    same(ours, all, side);
    if (ours.length !== EXPECTED[side])
        throw new Error(`the suite has ${ours.length} ${side} scenarios for us, not ${EXPECTED[side]}: look at them`);
    return ours;
}

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

function same(ours, all, side) {
    const missing = all.filter((name) => !ours.includes(name));
    const unknown = ours.filter((name) => !all.includes(name));
    if (missing.length + unknown.length > 0)
        throw new Error(`the suite's lists of ${side} scenarios differ: ${[...missing, ...unknown].join(", ")}`);
}
