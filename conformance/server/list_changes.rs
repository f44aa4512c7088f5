//! Tools that change the server's offers at run time, so that subscribers receive notifications.

use antiphon::server::{BuildError, Ctx, NoArguments, Prompt, ServerBuilder, Tool};

const TOOL: &str = "test_comes_and_goes";
const PROMPT: &str = "test_prompt_comes_and_goes";

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .list_changed(true)
        .resource_updates(true)
        .tool(Tool::new("test_trigger_tool_change", change_tools).description("Adds or removes a tool."))
        .tool(
            Tool::new("test_trigger_prompt_change", change_prompts).description("Adds or removes a prompt."),
        )
}

async fn change_tools(ctx: &Ctx, _: NoArguments) -> Result<&'static str, BuildError> {
    let server = ctx.server();
    if !server.remove_tool(TOOL) {
        server.add_tool(Tool::new(TOOL, nothing).description("Here for a while."))?;
    }
    Ok("The tools changed.")
}

async fn change_prompts(ctx: &Ctx, _: NoArguments) -> Result<&'static str, BuildError> {
    let server = ctx.server();
    if !server.remove_prompt(PROMPT) {
        server.add_prompt(Prompt::new(PROMPT, nothing_to_say).description("Here for a while."))?;
    }
    Ok("The prompts changed.")
}

async fn nothing(_ctx: &Ctx, _: NoArguments) {}

async fn nothing_to_say(_ctx: &Ctx, _: NoArguments) -> String {
    "Nothing.".to_owned()
}
