//! `tasks/list` in the forms of sessions and of the draft.

use super::{
    earlier, id,
    requests::{SettingsOf, load},
};
use crate::{
    errors::refusal::Refusal,
    identity::caller::Caller,
    request::receive::Request,
    runtime::{Runtime, claims::owner},
};
use antiphon_store::TaskKey;
use antiphon_wire::{ListTasksResult, escaped};
use serde::Deserialize;
use std::{borrow::Cow, sync::Arc};

/// The number of tasks on a page, if the server sets none.
const PAGE: usize = 50;

/// Returns a page of the caller's tasks.
///
/// All anonymous callers are one owner. So an anonymous caller gets the tasks that its session has created, and without a session
/// none.
///
/// > receivers **MUST** ensure the returned task list includes only tasks associated with the requestor's authorization context.
pub(crate) async fn list(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
    page_size: Option<usize>,
) -> Result<ListTasksResult, Refusal> {
    let tasks = server.tasks.as_ref().ok_or_else(|| Refusal::Method(request.method.to_string()))?;
    let after = cursor(request)?;
    let principal = server.identified(&request.method, caller)?;
    let size = page_size.unwrap_or(PAGE);
    // One more than the page has, to see whether there is another page.
    let mut keys = match (&principal, &request.session) {
        (None, Some(session)) => session.tasks_after(after, size + 1),
        (None, None) => Vec::new(),
        (Some(_), _) => {
            let own = tasks.engine.list_of_owner(owner(principal.as_ref()), after, size + 1).await;
            own.map_err(|error| {
                tracing::error!(error = %escaped(&error), "the tasks of a caller cannot be listed");
                Refusal::Store
            })?
        }
    };
    // > Receivers **MUST** include a `nextCursor` in the response if more tasks are available.
    let has_more = keys.len() > size;
    keys.truncate(size);
    let next = keys.last().filter(|_| has_more).map(|key| id::text(*key));
    let mut page = Vec::with_capacity(keys.len());
    for key in keys {
        let Some((row, shown)) = load(server, tasks, key, principal.as_ref()).await? else { continue };
        // The caller could not get such a task.
        let scopes = settings(&shown.tool).map(|settings| &settings.scopes);
        if scopes.is_none_or(|scopes| caller.has_scopes(scopes)) {
            page.push(earlier::task(server, key, &row, &shown).task);
        }
    }
    Ok(ListTasksResult::new(page, next))
}

/// > Invalid or nonexistent cursor in `tasks/list`: `-32602` (Invalid params)
fn cursor(request: &Request<'_>) -> Result<Option<TaskKey>, Refusal> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(cursor) = request.params.cursor else { return Ok(None) };
    let text = serde_json::from_str(cursor.get()).ok().and_then(|Text(text)| id::parse(&text));
    text.map(Some).ok_or_else(|| Refusal::params("Invalid cursor"))
}
