//! `tools` and `discover`.

use crate::{
    args::TargetArgs,
    console,
    failure::{Exit, Failure},
    observe::Legs,
    report::{self, Outcome},
    show,
    target::Target,
};
use antiphon::client::Client;
use serde_json::json;

pub(super) async fn tools(as_json: bool, args: &TargetArgs, tell: Option<fn(&str)>) -> Result<Exit, Failure> {
    ended(
        as_json,
        with_client(args, tell, async |client| {
            let tools = client.list_tools().await?;
            if as_json {
                report::print_result_json(&json!({ "tools": tools }));
                return Ok(Exit::Done);
            }
            for tool in tools {
                let description = tool.description.as_deref().map(show::line).unwrap_or_default();
                console::out(format!("{}  {description}", show::line(&tool.name)).trim_end());
            }
            Ok(Exit::Done)
        })
        .await,
    )
}

pub(super) async fn discover(
    as_json: bool,
    args: &TargetArgs,
    tell: Option<fn(&str)>,
) -> Result<Exit, Failure> {
    ended(
        as_json,
        with_client(args, tell, async |client| {
            let found = client.discover().await?;
            if as_json {
                report::print_result_json(&found);
                return Ok(Exit::Done);
            }
            if let Some(info) = client.server_info() {
                console::out(&format!("{} {}", show::line(info.display_name()), show::line(&info.version)));
            }
            let versions: Vec<String> =
                found.supported_versions.iter().map(|version| show::line(version.as_str())).collect();
            console::out(&format!("versions: {}", versions.join(", ")));
            let offers: Vec<String> = found.capabilities.0.keys().map(|name| show::line(name)).collect();
            console::out(&format!("offers: {}", offers.join(", ")));
            if let Some(instructions) = &found.instructions {
                console::out(&show::indented(instructions));
            }
            Ok(Exit::Done)
        })
        .await,
    )
}

async fn with_client(
    args: &TargetArgs,
    tell: Option<fn(&str)>,
    work: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let client = Target::required(args)?.connect(args.timeout, &Legs::new(tell), |builder| builder)?;
    let exit = work(&client).await;
    client.close().await;
    exit
}

/// A failure is printed as JSON too, where that was asked for.
fn ended(as_json: bool, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match result {
        Err(failure) if as_json => {
            let outcome = Outcome::Failed(failure);
            outcome.print_json(0);
            Ok(outcome.exit())
        }
        result => result,
    }
}
