//! The server of a call, and the connection to it.

use crate::{
    args::{EnvVariable, HttpHeader, TargetArgs},
    console,
    failure::Failure,
    features,
    leg_observer::LegObserver,
    sanitize,
    servers_file::{self, NamedServer},
};
use antiphon::{
    client::{
        Client, ClientBuilder, Mode,
        transport::{ChildCommand, ChildStderr, ChildTransport, HttpTransport},
    },
    wire::AskSupport,
};
use std::{ffi::OsString, time::Duration};

/// The maximum length of a shown URL or name, in characters.
const SHOWN: usize = 200;

/// The server of a call.
pub(crate) enum Target {
    Url {
        url: String,
        /// The text to show in the place of a URL that contains the values of variables.
        shown: Option<String>,
        bearer: Option<String>,
        headers: Vec<HttpHeader>,
    },
    Child {
        words: Vec<OsString>,
        /// The text to show in the place of a program whose name contains the values of variables.
        shown: Option<String>,
        variables: Vec<(String, OsString)>,
        inherit_env: bool,
    },
}

impl Target {
    /// Returns the server that the command line names, if it names one.
    pub(crate) fn given(args: &TargetArgs) -> Result<Option<Self>, Failure> {
        let target = match (&args.url, args.servers.as_deref().zip(args.server.as_deref())) {
            (_, Some((file, name))) => Self::named(servers_file::read(file, name)?),
            _ if !args.command.is_empty() => Self::child(args.command.clone()),
            (Some(url), _) => Self::url(url.clone()),
            (None, None) => return Ok(None),
        };
        target.with(args).map(Some)
    }

    /// Returns a server at a URL, without a token.
    pub(crate) fn url(url: String) -> Self {
        Self::Url { url, shown: None, bearer: None, headers: Vec::new() }
    }

    /// Returns a server that is started as a child.
    pub(crate) fn child(words: Vec<OsString>) -> Self {
        Self::Child { words, shown: None, variables: Vec::new(), inherit_env: false }
    }

    /// Returns a server of a host's configuration.
    fn named(server: NamedServer) -> Self {
        match server {
            NamedServer::Url { url, shown, headers } => {
                Self::Url { shown: (shown != url).then_some(shown), url, bearer: None, headers }
            }
            NamedServer::Command { words, shown, variables } => {
                Self::Child { words, shown: Some(shown), variables, inherit_env: false }
            }
        }
    }

    /// Adds the flags for a URL, or for a command.
    fn with(mut self, args: &TargetArgs) -> Result<Self, Failure> {
        match &mut self {
            Self::Url { url, shown, bearer, headers } => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    let url = sanitize::truncated(shown.as_ref().unwrap_or(url), SHOWN);
                    return Err(Failure::usage(format!(
                        "`{url}` is not the URL of a server: it must begin with http:// or https://. Write a command after `--`"
                    )));
                }
                if !args.variables.is_empty() || args.inherit_env {
                    return Err(Failure::usage("--env and --inherit-env are for a command, not for a URL"));
                }
                let is_authorization =
                    |header: &HttpHeader| header.name.eq_ignore_ascii_case("authorization");
                if !headers.iter().any(is_authorization) {
                    bearer.clone_from(&args.bearer);
                }
                headers.extend(args.headers.iter().cloned());
                if let Some(HttpHeader { name, .. }) = headers.iter().find(|it| is_of_transport(&it.name)) {
                    return Err(Failure::usage(format!(
                        "the header `{}` belongs to the transport and cannot be set",
                        sanitize::truncated(name, SHOWN)
                    )));
                }
            }
            Self::Child { variables, inherit_env, .. } => {
                if !args.headers.is_empty() {
                    return Err(Failure::usage("--header is for a URL, not for a command"));
                }
                *inherit_env = args.inherit_env;
                for variable in &args.variables {
                    variables.push((variable.name.clone(), value_of(variable)?));
                }
            }
        }
        Ok(self)
    }

    /// Returns the server that the command line names.
    pub(crate) fn required(args: &TargetArgs) -> Result<Self, Failure> {
        Self::given(args)?
            .ok_or_else(|| Failure::usage("no server: give its URL, or `--` and the command that starts it"))
    }

    /// Returns the server that a stored value names, such as a pending call, if it names a URL.
    pub(crate) fn of_stored(target: &str, what: &str, args: &TargetArgs) -> Result<Self, Failure> {
        if target.starts_with("http://") || target.starts_with("https://") {
            if target.contains("${") {
                return Err(Failure::usage(format!(
                    "the {what} began at {}, with variables of a file of servers: give --servers and --server",
                    sanitize::line(target)
                )));
            }
            if args.bearer.is_some() {
                // Otherwise the author of the file would choose the receiver of the token.
                return Err(Failure::usage(format!(
                    "a bearer token is set (--bearer or MCP_BEARER), and the {what} itself names the server, {}: \
                     give the URL on the command line, so that the token goes to the server that you intend",
                    sanitize::line(target)
                )));
            }
            return Self::url(target.to_owned()).with(args);
        }
        Err(Failure::usage(format!(
            "the {what} began with the command `{}`: give the whole command after `--`, or a URL",
            sanitize::line(target)
        )))
    }

    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Self::Child { .. })
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
            Self::Url { url, .. } if !cfg!(feature = "https") && url.starts_with("https://") => {
                return Err(Failure::usage(features::absent("a server at an https URL", "https")));
            }
            Self::Url { url, shown, bearer, headers } => {
                let mut builder = HttpTransport::builder(url);
                for HttpHeader { name, value } in headers {
                    builder = builder.header(name, value);
                }
                if let Some(token) = bearer {
                    builder = builder.bearer(token);
                }
                // The query may hold a key.
                if let Some(name) = shown.as_ref().and_then(|shown| shown.split(['?', '#']).next()) {
                    builder = builder.named(name);
                }
                legs.observe(builder.build().map_err(|error| Failure::usage(error.to_string()))?)
            }
            Self::Child { words, shown, variables, inherit_env } => {
                legs.observe(spawn(words, shown, variables, inherit_env)?)
            }
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

/// Returns `true` for the headers that the connection or the protocol sets itself.
fn is_of_transport(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "accept",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name) || name.starts_with("mcp-")
}

/// Returns the value of a variable for a command.
fn value_of(variable: &EnvVariable) -> Result<OsString, Failure> {
    let name = &variable.name;
    match &variable.value {
        Some(value) => Ok(value.into()),
        None => std::env::var_os(name)
            .ok_or_else(|| Failure::usage(format!("--env {name}: this program has no such variable"))),
    }
}

fn spawn(
    words: Vec<OsString>,
    shown: Option<String>,
    variables: Vec<(String, OsString)>,
    inherit_env: bool,
) -> Result<ChildTransport, Failure> {
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| Failure::usage("no command after `--`"))?;
    let name = shown.unwrap_or_else(|| program.to_string_lossy().into_owned());
    let prefix = name.clone();
    let stderr = if console::is_quiet() {
        ChildStderr::Discard
    } else {
        // The prefix distinguishes the server's lines from ours, and sanitizing keeps them from controlling the terminal.
        ChildStderr::Lines(Box::new(move |line: &str| {
            console::note(&format!("[{}] {}", sanitize::line(&prefix), sanitize::line(line)))
        }))
    };
    let command = ChildCommand::new(program).named(name).args(words).inherit_env(inherit_env).stderr(stderr);
    let command = variables.into_iter().fold(command, |command, (name, value)| command.env(name, value));
    ChildTransport::spawn(command).map_err(|error| Failure::protocol("transport", error.to_string()))
}

#[cfg(all(test, not(feature = "https")))]
mod tests {
    use super::*;

    #[test]
    fn an_https_url_is_refused_with_the_name_of_the_feature() {
        let target = Target::url("https://a.example/mcp".into());
        let refused =
            target.connect(1, Mode::Auto, &LegObserver::new(None), |builder| builder).err().unwrap();
        assert!(refused.message.contains("needs the feature `https`"), "{}", refused.message);
    }
}
