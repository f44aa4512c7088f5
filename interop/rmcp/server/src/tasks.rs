//! Tools whose calls are tasks of rmcp's `TaskManager`.

use crate::asks::text_form;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, CreateTaskResult, ErrorCode},
    task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions},
};
use serde_json::Value;

/// The tools. None has arguments.
pub(crate) const TOOLS: [&str; 5] = ["work", "ask", "endless", "fail_in_task", "refuse_in_task"];
const POLL_INTERVAL_MS: u64 = 50;

/// Starts the task of a call; `None` if the tool is no task.
pub(crate) fn start(manager: &TaskManager, tool: &str) -> Option<CreateTaskResult> {
    let tool = TOOLS.into_iter().find(|name| *name == tool)?;
    let options = TaskOptions::new().with_poll_interval_ms(POLL_INTERVAL_MS);
    let task = manager.spawn(options, move |context| Box::pin(run(tool, context)));
    Some(CreateTaskResult::new(task))
}

async fn run(tool: &str, context: TaskContext) -> Result<CallToolResult, TaskExit> {
    let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
    match tool {
        "work" => {
            context.set_status_message("half of it");
            Ok(text("worked".into()))
        }
        "ask" => {
            let answer = context.request_input("who", text_form("Who is there?", "name")?).await?;
            Ok(text(match answer["action"].as_str() {
                Some("accept") => {
                    format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("nobody"))
                }
                other => format!("Nobody to greet: {}.", other.unwrap_or("no action")),
            }))
        }
        "endless" => {
            context.cancelled().await;
            Err(TaskExit::Cancelled)
        }
        "fail_in_task" => Ok(CallToolResult::error(vec![ContentBlock::text("out of paper")])),
        _ => Err(ErrorData::new(ErrorCode(-32050), "No tea here", None::<Value>).into()),
    }
}
