//! `complete`: suggestions for one argument.

use super::query::{none_if_unknown, print_failure, with_client};
use crate::{
    args::{ClientArgs, Completable, CompleteArgs},
    console,
    failure::{Exit, Failure},
    outcome, sanitize,
};
use antiphon::wire::completion::{Completion, CompletionContext, CompletionReference};

pub(super) async fn complete(args: CompleteArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let CompleteArgs { of, name, argument: (argument, value), known, json, target } = args;
    let reference = match of {
        Completable::Prompt => CompletionReference::prompt(name),
        Completable::Resource => CompletionReference::resource(name),
    };
    let context = (!known.is_empty()).then(|| CompletionContext::new(known.into_iter().collect()));
    let work = with_client(&target, ClientArgs::default(), log, async |client| {
        let found = none_if_unknown(client.complete(reference, argument, value, context).await)?;
        if found.is_none() {
            console::hint("the server offers no completion");
        }
        print(&found.unwrap_or_default(), json);
        Ok(Exit::Done)
    });
    print_failure(json, work.await)
}

fn print(found: &Completion, as_json: bool) {
    if as_json {
        return outcome::print_result_json(found);
    }
    found.values.iter().for_each(|value| console::out(&sanitize::line(value)));
    let shown = found.values.len() as u64;
    match found.total {
        Some(total) if total > shown => console::hint(&format!("showing {shown} of {total}")),
        None if found.has_more == Some(true) => console::hint("there are more values"),
        _ => {}
    }
}
