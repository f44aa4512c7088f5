//! The server of a call, and the connection to it.

use crate::{args::TargetArgs, console, failure::Failure, leg_observer::LegObserver, sanitize};
use antiphon::{
    client::{
        Client, ClientBuilder, Mode, PendingCall,
        transport::{ChildCommand, ChildStderr, ChildTransport, HttpTransport},
    },
    wire::AskSupport,
};
use std::{ffi::OsString, time::Duration};

/// The server of a call.
pub(crate) enum Target {
    Url { url: String, bearer: Option<String> },
    Child(Vec<OsString>),
}

impl Target {
    /// Returns the server that the command line names, if it names one.
    pub(crate) fn given(args: &TargetArgs) -> Result<Option<Self>, Failure> {
        match &args.url {
            _ if !args.command.is_empty() => Ok(Some(Self::Child(args.command.clone()))),
            Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Some(Self::Url { url: url.clone(), bearer: args.bearer.clone() }))
            }
            Some(other) => Err(Failure::usage(format!(
                "`{other}` is not the URL of a server: it must begin with http:// or https://. Write a command after `--`"
            ))),
            None => Ok(None),
        }
    }

    /// Returns the server that the command line names.
    pub(crate) fn required(args: &TargetArgs) -> Result<Self, Failure> {
        Self::given(args)?
            .ok_or_else(|| Failure::usage("no server: give its URL, or `--` and the command that starts it"))
    }

    /// Returns the server of the pending call, if the call names a URL.
    pub(crate) fn of_pending(pending: &PendingCall, args: &TargetArgs) -> Result<Self, Failure> {
        let target = &pending.server().target;
        if target.starts_with("http://") || target.starts_with("https://") {
            if args.bearer.is_some() {
                // Otherwise the author of the file would choose the receiver of the token.
                return Err(Failure::usage(format!(
                    "a bearer token is set (--bearer or MCP_BEARER), and the pending call itself names the server, {}: \
                     give the URL on the command line, so that the token goes to the server that you intend",
                    sanitize::line(target)
                )));
            }
            return Ok(Self::Url { url: target.clone(), bearer: None });
        }
        Err(Failure::usage(format!(
            "the pending call began with the command `{}`: give the whole command after `--`, or a URL",
            sanitize::line(target)
        )))
    }

    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    /// Connects to the server. The client declares forms and URLs, and `drive` answers their questions between the
    /// legs. `attach` configures the client further.
    pub(crate) fn connect(
        self,
        timeout: u64,
        mode: Mode,
        legs: &LegObserver,
        attach: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Failure> {
        let transport = match self {
            Self::Url { url, bearer } => {
                let mut builder = HttpTransport::builder(url);
                if let Some(token) = bearer {
                    builder = builder.bearer(token);
                }
                legs.observe(builder.build().map_err(|error| Failure::usage(error.to_string()))?)
            }
            Self::Child(words) => legs.observe(spawn(words)?),
        };
        let builder = Client::builder("antiphon", env!("CARGO_PKG_VERSION"))
            .declare(AskSupport::ELICITATION)
            .mode(mode)
            .leg_timeout(Duration::from_secs(timeout))
            // The time limit for URLs that must be opened before a call continues.
            .url_retry_interval(Duration::from_secs(timeout));
        Ok(attach(builder).connect(transport))
    }
}

fn spawn(words: Vec<OsString>) -> Result<ChildTransport, Failure> {
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| Failure::usage("no command after `--`"))?;
    let name = program.to_string_lossy().into_owned();
    // The prefix distinguishes the server's lines from ours, and sanitizing keeps them from controlling the terminal.
    let lines = Box::new(move |line: &str| {
        console::note(&format!("[{}] {}", sanitize::line(&name), sanitize::line(line)))
    });
    let command = ChildCommand::new(program).args(words).stderr(ChildStderr::Lines(lines));
    ChildTransport::spawn(command).map_err(|error| Failure::protocol("transport", error.to_string()))
}
