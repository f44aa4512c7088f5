//! `complete`: suggestions for one argument.

use super::ask_server::{as_none, ended, with_client};
use crate::{
    args::{Completable, CompleteArgs},
    console,
    failure::{Exit, Failure},
    report, show,
};
use antiphon::wire::{Completion, CompletionContext, CompletionReference};

pub(super) async fn complete(args: CompleteArgs, tell: Option<fn(&str)>) -> Result<Exit, Failure> {
    let CompleteArgs { of, name, argument: (argument, value), known, json, target } = args;
    let reference = match of {
        Completable::Prompt => CompletionReference::prompt(name),
        Completable::Resource => CompletionReference::resource(name),
    };
    let context = (!known.is_empty()).then(|| CompletionContext::new(known.into_iter().collect()));
    let work = with_client(&target, tell, async |client| {
        let found = as_none(client.complete(reference, argument, value, context).await)?;
        if found.is_none() {
            console::note("the server offers no completion");
        }
        print(&found.unwrap_or_default(), json);
        Ok(Exit::Done)
    });
    ended(json, work.await)
}

fn print(found: &Completion, as_json: bool) {
    if as_json {
        return report::print_result_json(found);
    }
    found.values.iter().for_each(|value| console::out(&show::line(value)));
    let shown = found.values.len() as u64;
    match found.total {
        Some(total) if total > shown => console::note(&format!("these are {shown} of {total}")),
        None if found.has_more == Some(true) => console::note("there are more than these"),
        _ => {}
    }
}
