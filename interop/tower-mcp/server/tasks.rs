//! Tools whose calls are tasks, each made by one of tower-mcp's two ways: a handler that stays alive while it waits, and a
//! handler that runs again with the answers. None has arguments.

use crate::asks::{NoArguments, action, field, form, only};
use tower_mcp::{
    CallToolResult, InputRequiredResult, JsonRpcError, McpRouter, RequestContext, RequestOutcome,
    TaskContext, TaskOutcome, ToolBuilder, protocol::TaskSupportMode,
};

pub(crate) fn add(router: McpRouter) -> McpRouter {
    router
        .tool(
            ToolBuilder::new("work")
                .live_task_handler(async |task: TaskContext, _: NoArguments| {
                    task.working("half of it").await?;
                    Ok(TaskOutcome::Completed(CallToolResult::text("worked")))
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("ask")
                .live_task_handler(async |task: TaskContext, _: NoArguments| {
                    let answers = task.require_input(only("who", form("Who is there?", &["name"]))).await?;
                    Ok(TaskOutcome::Completed(CallToolResult::text(greeting(&answers))))
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("ask_twice")
                .live_task_handler(async |task: TaskContext, _: NoArguments| {
                    let first = task.require_input(only("first", form("First?", &["word"]))).await?;
                    let second = task.require_input(only("second", form("Second?", &["word"]))).await?;
                    let words = [field(&first, "first", "word"), field(&second, "second", "word")];
                    Ok(TaskOutcome::Completed(CallToolResult::text(words.join(" "))))
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("endless")
                .live_task_handler(async |task: TaskContext, _: NoArguments| {
                    task.cancelled().await;
                    Ok(TaskOutcome::Cancelled { message: None })
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("fail_in_task")
                .live_task_handler(async |_: TaskContext, _: NoArguments| {
                    Ok(TaskOutcome::Completed(CallToolResult::error("out of paper")))
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("refuse_in_task")
                .live_task_handler(async |_: TaskContext, _: NoArguments| {
                    let (code, message) = (-32050, "No tea here".to_owned());
                    Ok(TaskOutcome::Failed(JsonRpcError { code, message, data: None }))
                })
                .build(),
        )
        .tool(
            ToolBuilder::new("ask_again")
                .task_support(TaskSupportMode::Optional)
                .mrtr_handler(async |context: RequestContext, _: NoArguments| {
                    Ok(match context.input_responses() {
                        Some(answers) => RequestOutcome::Complete(CallToolResult::text(greeting(answers))),
                        None => RequestOutcome::InputRequired(
                            InputRequiredResult::with_requests(only("who", form("Who is there?", &["name"])))
                                .with_request_state("the state of the handler"),
                        ),
                    })
                })
                .build(),
        )
}

fn greeting(answers: &tower_mcp::InputResponses) -> String {
    match action(answers, "who").as_str() {
        "accept" => format!("Hello, {}!", field(answers, "who", "name")),
        other => format!("Nobody to greet: {other}."),
    }
}
