//! Functions for the commands without questions.

use crate::{
    answer_flags::AnswerFlags,
    args::{ClientArgs, TargetArgs},
    failure::{Exit, Failure},
    leg_observer::LegObserver,
    outcome::Outcome,
    session_questions,
    target::Target,
};
use antiphon::{
    client::{Client, ClientError},
    wire::ErrorCode,
};

/// Connects to the server, runs `work`, and closes the connection.
pub(super) async fn with_client(
    args: &TargetArgs,
    client: ClientArgs,
    log: Option<fn(&str)>,
    work: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    // Some servers offer more to a client that can be asked.
    let answers = AnswerFlags::new(Vec::new())?.with_client_answers(client);
    let client = Target::required(args)?.connect(
        args.timeout,
        args.mode.clone(),
        &LegObserver::new(log),
        |builder| session_questions::attach(builder.declare(answers.asks()), &answers),
    )?;
    let exit = work(&client).await;
    client.close().await;
    exit
}

/// Prints a failure as JSON, if `as_json` is true.
pub(super) fn print_failure(as_json: bool, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match result {
        Err(failure) if as_json => {
            let outcome = Outcome::Failed(failure);
            outcome.print_json(0);
            Ok(outcome.exit())
        }
        result => result,
    }
}

/// Returns `None` if the server does not have the method. The server then offers nothing of that kind.
pub(super) fn none_if_unknown<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.server_error().is_some_and(|it| it.code == ErrorCode::METHOD_NOT_FOUND) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
