//! The server under test: a URL, or a command after `--`.

use crate::error::AnyError;
use antiphon::client::transport::{ChildCommand, ChildStderr, ChildTransport, HttpTransport, Transport};
use std::sync::Arc;

pub(crate) fn connect(target: &[String]) -> Result<Arc<dyn Transport>, AnyError> {
    match target {
        [url] => Ok(Arc::new(HttpTransport::new(url)?)),
        [dashes, program, arguments @ ..] if dashes == "--" => {
            let command = ChildCommand::new(program).args(arguments).stderr(ChildStderr::Discard);
            Ok(Arc::new(ChildTransport::spawn(command)?))
        }
        _ => Err("usage: one URL, or a command after `--`".into()),
    }
}
