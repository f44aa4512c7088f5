// Drives the task tools of our everything server with the client of `@modelcontextprotocol/ext-tasks`.
// See `../tasks_checks.mjs`.

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { JsonRpcResponseError, createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { VERSION } from '../node.mjs';
import { accept, check, refused, runChecks, same } from '../tasks_checks.mjs';
import { overHttp, overStdio } from './raw_dispatch.mjs';

const CLIENT = { name: 'typescript-tasks-peer', version: '1.0.0' };
const CAPABILITIES = { elicitation: { form: {} } };

// ---- the server ------------------------------------------------------------------------------------------------------

/** Our server on one transport. Over stdio each client has a server of its own. */
class Ours {
    constructor(program, url) {
        Object.assign(this, { program, url, open: [] });
    }

    /** A connected client of the SDK. */
    async client() {
        const client = new Client(CLIENT, { capabilities: CAPABILITIES, versionNegotiation: { mode: { pin: VERSION } } });
        const transport = this.url
            ? new StreamableHTTPClientTransport(new URL(this.url))
            : new StdioClientTransport({ command: this.program, args: ['--stdio'], stderr: 'ignore' });
        await client.connect(transport);
        this.open.push(() => client.close());
        const dispatch = this.url ? overHttp(this.url) : overStdio(transport);
        return { client, dispatch };
    }

    /** A session with tasks. `answers` are taken by the message of their question; `asked` is the messages in order. */
    async session(answers = {}) {
        const { client, dispatch } = await this.client();
        const asked = [];
        const session = createTaskSessionFromClient(client, {
            endpointId: 'antiphon-conformance',
            rawDispatch: dispatch,
            v2RequestFraming: { protocolVersion: VERSION, clientInfo: CLIENT, clientCapabilities: CAPABILITIES },
            onInputRequest: ({ params }) => {
                asked.push(params.message);
                if (!(params.message in answers)) throw new Error(`no answer for ${params.message}`);
                return answers[params.message];
            },
        });
        this.open.push(() => session.close());
        return { session, asked };
    }

    async close() {
        for (const close of this.open.reverse()) await close();
    }
}

// ---- words for checks ------------------------------------------------------------------------------------------------

function textOf({ outcome }) {
    same([outcome.status, outcome.result?.isError ?? false], ['completed', false]);
    return outcome.result.content[0].text;
}

/** A call that must be a task, and its end. */
async function task(session, name, args = {}) {
    const execution = await session.callTool(name, args);
    same(execution.kind, 'task');
    return execution.settle();
}

// ---- checks ----------------------------------------------------------------------------------------------------------

check('task: a tool without tasks answers at once', async ours => {
    const { session } = await ours.session();
    const execution = await session.callTool('greet', { name: 'Ada' });
    same(execution.kind, 'immediate');
    same(textOf(await execution.settle()), 'Hello, Ada!');
});

check('task: polled until its result', async ours => {
    const { session } = await ours.session();
    const execution = await session.callTool('slow_compute', { seconds: 1, label: 'short' });
    same(execution.kind, 'task');
    const states = [];
    const end = await execution.settle({ onEvent: event => void states.push(event.task?.status ?? event.outcome.status) });
    same(textOf(end), 'short: computed for 1 s');
    same([states[0], states.at(-1)], ['working', 'completed']);
});

check('task: the error of its tool completes it', async ours => {
    const { session } = await ours.session();
    const { outcome } = await task(session, 'failing_job');
    same([outcome.status, outcome.result.isError, outcome.result.content[0].text], ['completed', true, 'the job failed']);
});

check('task: the error of its request fails it', async ours => {
    const { session } = await ours.session();
    const { outcome } = await task(session, 'protocol_error_job');
    same([outcome.status, outcome.error?.code], ['failed', -32603]);
});

check('task: a question is asked once, and answered', async ours => {
    const { session, asked } = await ours.session({ 'Delete a.txt?': accept({ confirm: true }) });
    same(textOf(await task(session, 'confirm_delete', { filename: 'a.txt' })), 'deleted a.txt');
    same(asked, ['Delete a.txt?']);
});

check('task: a question is declined', async ours => {
    const { session, asked } = await ours.session({ 'Delete a.txt?': { action: 'decline' } });
    const { outcome } = await task(session, 'confirm_delete', { filename: 'a.txt' });
    same([outcome.status, outcome.result.isError], ['completed', true]);
    same(asked, ['Delete a.txt?']);
});

check('task: two questions wait at once', async ours => {
    const answers = { 'What is your name?': accept({ name: 'Ada' }), 'Do you confirm?': accept({ confirm: true }) };
    const { session, asked } = await ours.session(answers);
    same(textOf(await task(session, 'multi_input')), 'Ada: true');
    same(asked.sort(), ['Do you confirm?', 'What is your name?']);
});

check('task: a round comes before it', async ours => {
    const { session, asked } = await ours.session({ 'What is your name?': accept({ name: 'Ada' }) });
    same(textOf(await task(session, 'test_tool_with_task')), 'Hello, Ada!');
    same(asked, ['What is your name?']);
});

check('task: cancelled while it runs', async ours => {
    const { session } = await ours.session();
    const execution = await session.callTool('slow_compute', { seconds: 3600, label: 'long' });
    same(execution.kind, 'task');
    await execution.cancel();
    same((await execution.settle()).outcome.status, 'cancelled');
});

check(
    'task: left, and continued by another client',
    async ours => {
        const answers = { 'Delete b.txt?': accept({ confirm: false }) };
        const execution = await (await ours.session(answers)).session.callTool('confirm_delete', { filename: 'b.txt' });
        let reference;
        // The first session stays open: its end would cancel a task that it has just handed over.
        await execution.handoff(left => void (reference = JSON.stringify(left)));
        const { session } = await ours.session(answers);
        same(textOf(await (await session.resumeTask(JSON.parse(reference))).settle()), 'kept b.txt');
    },
    { ways: ['http'] }, // over stdio the tasks are those of the process, and so of the client
);

check('task: read and answered by hand', async ours => {
    const { session } = await ours.session();
    const execution = await session.callTool('confirm_delete', { filename: 'c.txt' });
    const reference = execution.serializeReference();
    await execution.detach();
    const controller = session.task(reference.taskId);
    let view = await controller.snapshot();
    while (view.status === 'working') view = await controller.snapshot();
    same(view.status, 'input_required');
    const [key] = Object.keys(view.raw.inputRequests);
    await controller.update({ [key]: accept({ confirm: true }) });
    same(textOf({ outcome: await controller.result() }), 'deleted c.txt');
});

check('task: an unknown id', async ours => {
    const { session } = await ours.session();
    await refused(session.task('0123456789abcdef0123456789abcdef').snapshot(), JsonRpcResponseError, -32602);
});

check('task: a client that did not declare the extension', async ours => {
    const { client } = await ours.client();
    await refused(client.callTool({ name: 'failing_job', arguments: {} }), ProtocolError, -32021);
});

await runChecks(Ours, VERSION);
