// What one run of one scenario is worth. Stricter than the suite: a warning is red, and so is a check that was skipped
// without leave, and a run in which less was found to be right than we once saw.

import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { EXPECTED, MAY_SKIP } from "./scenarios.mjs";

/**
 * @param {{ revision: string, scenario: string, side: string, folder: string, exit: number | null, timedOut: boolean }} run
 * @returns {{ counts: Record<string, number>, faults: string[] }} no faults: green
 */
export function judge(run) {
    const faults = [];
    const files = filesBelow(run.folder);
    const written = files.filter((file) => file.endsWith("/checks.json"));
    const counts = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0 };
    if (run.timedOut) faults.push("it did not end in time");
    else if (run.exit !== 0) faults.push(`the suite ended with ${run.exit}`);
    if (written.length !== 1) faults.push(`the suite wrote ${written.length} lists of checks`);
    for (const check of written.flatMap((file) => JSON.parse(readFileSync(file, "utf8")))) {
        if (!(check.status in counts)) faults.push(`a check has the unknown status ${check.status}`);
        counts[check.status] = (counts[check.status] ?? 0) + 1;
        const skipped = check.status === "SKIPPED" && !(MAY_SKIP[run.scenario] ?? []).includes(check.name);
        if (check.status === "FAILURE" || check.status === "WARNING" || skipped)
            faults.push(`${check.status} ${check.id} (${check.name}): ${check.errorMessage ?? check.description}`);
    }
    const least = EXPECTED[run.revision][run.side][run.scenario];
    if (counts.SUCCESS < least) faults.push(`${counts.SUCCESS} checks succeeded; at least ${least} are expected`);
    if (run.side === "client" && !files.some((file) => file.endsWith("/stdout.txt") && saysDone(file)))
        faults.push("the client did not say that it was done");
    return { counts, faults };
}

/** The suite forgives some scenarios the client's exit status; we do not. */
function saysDone(file) {
    return readFileSync(file, "utf8").trimEnd().split("\n").at(-1) === "done";
}

function filesBelow(folder) {
    return readdirSync(folder, { recursive: true }).map((name) => join(folder, name)).filter((path) => statSync(path).isFile());
}
