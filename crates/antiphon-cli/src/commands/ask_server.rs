//! What the commands share that ask a server something and are asked nothing.

use crate::{
    args::TargetArgs,
    failure::{Exit, Failure},
    observe::Legs,
    report::Outcome,
    target::Target,
};
use antiphon::{
    client::{Client, ClientError},
    wire::ErrorCode,
};

/// Connects, works, and closes.
pub(super) async fn with_client(
    args: &TargetArgs,
    tell: Option<fn(&str)>,
    work: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let client =
        Target::required(args)?
            .connect(args.timeout, args.mode.clone(), &Legs::new(tell), |builder| builder)?;
    let exit = work(&client).await;
    client.close().await;
    exit
}

/// A failure is printed as JSON too, where that was asked for.
pub(super) fn ended(as_json: bool, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match result {
        Err(failure) if as_json => {
            let outcome = Outcome::Failed(failure);
            outcome.print_json(0);
            Ok(outcome.exit())
        }
        result => result,
    }
}

/// `None` if the server does not know the method: it offers nothing of the kind, which is an answer too.
pub(super) fn as_none<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.server_error().is_some_and(|it| it.code == ErrorCode::METHOD_NOT_FOUND) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
