// Drives the task tools of our everything server with the client of the TypeScript SDK 1: tasks of 2025-11-25, on sessions.
// See `../tasks_checks.mjs`.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema,
    ElicitRequestSchema,
    McpError,
    RELATED_TASK_META_KEY,
    TaskStatusNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { accept, check, refused, runChecks, same } from '../tasks_checks.mjs';

// ---- the server ------------------------------------------------------------------------------------------------------

/** Our server on one transport. Over stdio each client has a server of its own. */
class Ours {
    constructor(program, url) {
        Object.assign(this, { program, url, open: [] });
    }

    /**
     * A client with a session. `answers` are taken by the message of their question; `asked` is the messages in order, and
     * `notified` the statuses of each task.
     */
    async session(answers = {}) {
        const client = new Client({ name: 'typescript-tasks-peer', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
        const asked = [];
        const notified = new Statuses();
        client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
            asked.push([params.message, relatedTask(params)]);
            if (!(params.message in answers)) throw new Error(`no answer for ${params.message}`);
            return answers[params.message];
        });
        client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => notified.add(params));
        const { transport, listens } = this.url
            ? overHttp(this.url)
            : { transport: new StdioClientTransport({ command: this.program, args: ['--stdio'], stderr: 'ignore' }) };
        await client.connect(transport);
        await listens;
        const close = async () => {
            if (this.url) await transport.terminateSession();
            await client.close();
        };
        this.open.push(close);
        // Sessions of earlier revisions have no tasks.
        same(client.getServerCapabilities().tasks, { list: {}, cancel: {}, requests: { tools: { call: {} } } });
        // The client finds in this list the tools that have tasks.
        await client.listTools();
        return { client, tasks: client.experimental.tasks, asked, notified, close };
    }

    async close() {
        for (const close of this.open.reverse()) await close();
    }
}

/** A transport, and `listens`, which resolves when the stream of the GET is open: the server sends its notifications there. */
function overHttp(url) {
    let transport;
    const listens = new Promise(opened => {
        const observed = async (target, init) => {
            const response = await fetch(target, init);
            if (init?.method === 'GET' && response.ok) opened();
            return response;
        };
        transport = new StreamableHTTPClientTransport(new URL(url), { fetch: observed });
    });
    return { transport, listens };
}

/** The statuses of tasks, as the server notifies of them. */
class Statuses {
    #seen = [];
    #wake = () => {};

    add({ taskId, status }) {
        this.#seen.push(`${taskId} ${status}`);
        this.#wake();
    }

    /** Waits for a status of a task. */
    async until(taskId, status) {
        while (!this.#seen.includes(`${taskId} ${status}`)) await new Promise(wake => (this.#wake = wake));
    }
}

// ---- words for checks ------------------------------------------------------------------------------------------------

const relatedTask = ({ _meta }) => _meta?.[RELATED_TASK_META_KEY]?.taskId;

/** A call to its end: the messages of the SDK's stream, taken apart. */
async function call({ tasks }, name, args = {}, task = undefined) {
    const run = { statuses: [] };
    for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task })) {
        if (message.type === 'taskCreated') run.task = message.task;
        if (message.task) run.statuses.push(message.task.status);
        if (message.result) run.result = message.result;
        if (message.error) run.error = message.error;
    }
    return run;
}

/** The text of a call that was a task and succeeded. */
function textOf({ task, result, error }) {
    same([task?.status, error?.message, result?.isError ?? false], ['working', undefined, false]);
    same(relatedTask(result), task.taskId);
    return result.content[0].text;
}

/** Begins a call that must be a task, and leaves it. */
async function begun({ tasks }, name, args) {
    const stream = tasks.callToolStream({ name, arguments: args }, CallToolResultSchema);
    const { value: message } = await stream.next();
    same(message.type, 'taskCreated');
    await stream.return();
    return message.task.taskId;
}

// ---- checks ----------------------------------------------------------------------------------------------------------

check('task: a tool without tasks answers at once', async ours => {
    const { task, result } = await call(await ours.session(), 'greet', { name: 'Ada' });
    same([task, result.content[0].text], [undefined, 'Hello, Ada!']);
});

check('task: polled until its result', async ours => {
    const session = await ours.session();
    const run = await call(session, 'slow_compute', { seconds: 1, label: 'short' });
    same(textOf(run), 'short: computed for 1 s');
    same([run.statuses[1], run.statuses.at(-1)], ['working', 'completed']);
    await session.notified.until(run.task.taskId, 'completed');
});

check('task: a tool that may become one is called without', async ours => {
    const { client, tasks } = await ours.session();
    const result = await client.callTool({ name: 'slow_compute', arguments: { seconds: 0, label: 'none' } });
    same([result.content[0].text, relatedTask(result)], ['none: computed for 0 s', undefined]);
    same((await tasks.listTasks()).tasks, []);
});

check('task: a lifetime that its client wants', async ours => {
    const run = await call(await ours.session(), 'slow_compute', { seconds: 0, label: 'brief' }, { ttl: 60_000 });
    same([textOf(run), run.task.ttl], ['brief: computed for 0 s', 60_000]);
});

check('task: the error of its tool fails it', async ours => {
    const session = await ours.session();
    const { task, statuses, error } = await call(session, 'failing_job');
    same([statuses.at(-1), error.code], ['failed', -32603]);
    same((await session.tasks.getTask(task.taskId)).statusMessage, 'the job failed');
    const result = await session.tasks.getTaskResult(task.taskId, CallToolResultSchema);
    same([result.isError, result.content[0].text], [true, 'the job failed']);
});

check('task: the error of its request fails it', async ours => {
    const session = await ours.session();
    const { task, statuses } = await call(session, 'protocol_error_job');
    same(statuses.at(-1), 'failed');
    await refused(session.tasks.getTaskResult(task.taskId, CallToolResultSchema), McpError, -32603);
});

check('task: a question is asked once, and answered', async ours => {
    const session = await ours.session({ 'Delete a.txt?': accept({ confirm: true }) });
    const run = await call(session, 'confirm_delete', { filename: 'a.txt' });
    same([textOf(run), run.statuses.at(-1)], ['deleted a.txt', 'input_required']);
    same(session.asked, [['Delete a.txt?', run.task.taskId]]);
});

check('task: a question is declined', async ours => {
    const session = await ours.session({ 'Delete a.txt?': { action: 'decline' } });
    const { task, result } = await call(session, 'confirm_delete', { filename: 'a.txt' });
    same([result.isError, session.asked], [true, [['Delete a.txt?', task.taskId]]]);
    same((await session.tasks.getTask(task.taskId)).status, 'failed');
});

check('task: two questions wait at once', async ours => {
    const answers = { 'What is your name?': accept({ name: 'Ada' }), 'Do you confirm?': accept({ confirm: true }) };
    const session = await ours.session(answers);
    same(textOf(await call(session, 'multi_input')), 'Ada: true');
    same(session.asked.map(([message]) => message).sort(), ['Do you confirm?', 'What is your name?']);
});

check('task: a question comes before its work', async ours => {
    const session = await ours.session({ 'What is your name?': accept({ name: 'Ada' }) });
    const run = await call(session, 'test_tool_with_task');
    same(textOf(run), 'Hello, Ada!');
    same(session.asked, [['What is your name?', run.task.taskId]]);
});

check('task: cancelled while it runs', async ours => {
    const { tasks, notified } = await ours.session();
    const id = await begun({ tasks }, 'slow_compute', { seconds: 3600, label: 'long' });
    same((await tasks.cancelTask(id)).status, 'cancelled');
    await notified.until(id, 'cancelled');
    same((await tasks.getTask(id)).status, 'cancelled');
    await refused(tasks.cancelTask(id), McpError, -32602);
});

check(
    'task: left with its question, and continued in another session',
    async ours => {
        const first = await ours.session();
        const id = await begun(first, 'confirm_delete', { filename: 'b.txt' });
        const { tasks, asked } = await ours.session({ 'Delete b.txt?': accept({ confirm: false }) });
        const result = await tasks.getTaskResult(id, CallToolResultSchema);
        same([result.content[0].text, asked, first.asked], ['kept b.txt', [['Delete b.txt?', id]], []]);
    },
    { ways: ['http'] }, // over stdio the tasks are those of the process, and so of the session
);

check('task: the list has the tasks of its session', async ours => {
    const [session, other] = [await ours.session(), await ours.session()];
    const { task } = await call(session, 'slow_compute', { seconds: 0, label: 'listed' });
    same((await session.tasks.listTasks()).tasks.map(({ taskId, status }) => [taskId, status]), [[task.taskId, 'completed']]);
    same((await other.tasks.listTasks()).tasks, []);
});

check('task: a call without a task of a tool that requires one', async ours => {
    const { client } = await ours.session();
    // `callTool` of the SDK would not send it.
    const request = { method: 'tools/call', params: { name: 'failing_job', arguments: {} } };
    await refused(client.request(request, CallToolResultSchema), McpError, -32601);
});

check('task: an unknown id', async ours => {
    const { tasks } = await ours.session();
    const id = '0123456789abcdef0123456789abcdef';
    await refused(tasks.getTask(id), McpError, -32602);
    await refused(tasks.getTaskResult(id, CallToolResultSchema), McpError, -32602);
    await refused(tasks.cancelTask(id), McpError, -32602);
});

await runChecks(Ours, '2025-11-25');
