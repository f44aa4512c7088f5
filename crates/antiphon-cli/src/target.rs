//! The server of a call, and the connection to it.

use crate::{
    args::{ConnectionArgs, EnvVariable, HttpHeader, TargetArgs},
    console,
    drive::LegObserver,
    ended_by_signal::EndingSignals,
    failure::{self, Failure},
    servers_file::{self, Expanded, NamedServer, Place},
    sign_in,
};
use antiphon::{
    client::{
        Client, ClientBuilder,
        transport::{ChildCommand, ChildStderr, ChildTransport, HttpTransport},
    },
    wire::AskSupport,
};
use std::{error::Error as _, ffi::OsString, path::Path, time::Duration};

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
    Child(ChildTarget),
}

/// A server that is started.
pub(crate) struct ChildTarget {
    words: Vec<OsString>,
    variables: Vec<(String, OsString)>,
    inherit_env: bool,
    /// The additions of a file of servers.
    configured: Option<Configured>,
}

/// The name of a server in its file, and the texts to show in the place of those that contain the values of variables.
struct Configured {
    name: String,
    program: String,
    directory: Option<Expanded>,
}

impl Target {
    /// Returns the server that the command line names, if it names one.
    pub(crate) fn given(args: &TargetArgs) -> Result<Option<Self>, Failure> {
        let connection = &args.connection;
        let target = match (&args.url, &connection.servers) {
            (_, Some(file)) => Self::named(servers_file::read(file, connection.server.as_deref())?),
            _ if !connection.command.is_empty() => Self::child(connection.command.clone()),
            (Some(url), _) => Self::url(url.clone()),
            (None, None) => return Ok(None),
        };
        target.with(connection).map(Some)
    }

    /// Returns the names of the servers that the command line means without naming one: those of a file with several servers.
    pub(crate) fn all_of_file(args: &TargetArgs) -> Result<Vec<String>, Failure> {
        match (&args.connection.servers, &args.connection.server) {
            (Some(file), None) if file != Path::new("-") => {
                Ok(Some(servers_file::names(file)?).filter(|names| names.len() > 1).unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns a server at a URL, without a token.
    pub(crate) fn url(url: String) -> Self {
        Self::Url { url, shown: None, bearer: None, headers: Vec::new() }
    }

    /// Returns a server that is started as a child.
    pub(crate) fn child(words: Vec<OsString>) -> Self {
        Self::Child(ChildTarget { words, variables: Vec::new(), inherit_env: false, configured: None })
    }

    /// Returns a server of a host's configuration.
    fn named(NamedServer { name, place }: NamedServer) -> Self {
        match place {
            Place::Url { url: Expanded { value: url, shown }, headers } => {
                let headers = headers.into_iter().map(|(name, text)| HttpHeader { name, value: text.value });
                let shown = (shown != url).then_some(shown);
                Self::Url { url, shown, bearer: None, headers: headers.collect() }
            }
            Place::Command { program, args, env, directory } => {
                let words = std::iter::once(program.value).chain(args.into_iter().map(|word| word.value));
                Self::Child(ChildTarget {
                    words: words.map(OsString::from).collect(),
                    variables: env.into_iter().map(|(name, text)| (name, text.value.into())).collect(),
                    inherit_env: false,
                    configured: Some(Configured { name, program: program.shown, directory }),
                })
            }
        }
    }

    /// Adds the flags for a URL, or for a command.
    fn with(mut self, args: &ConnectionArgs) -> Result<Self, Failure> {
        match &mut self {
            Self::Url { url, shown, bearer, headers } => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    let url = console::truncated(shown.as_ref().unwrap_or(url), SHOWN);
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
                        console::truncated(name, SHOWN)
                    )));
                }
            }
            Self::Child(ChildTarget { variables, inherit_env, .. }) => {
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
                    console::line(target)
                )));
            }
            if args.connection.bearer.is_some() {
                // Otherwise the author of the file would choose the receiver of the token.
                return Err(Failure::usage(format!(
                    "a bearer token is set (--bearer or MCP_BEARER), and the {what} itself names the server, {}: \
                     give the URL on the command line, so that the token goes to the server that you intend",
                    console::line(target)
                )));
            }
            return Self::url(target.to_owned()).with(&args.connection);
        }
        Err(Failure::usage(format!(
            "the {what} began with the command or the configured server `{}`: give the whole command after `--`, \
             --servers and --server, or a URL",
            console::line(target)
        )))
    }

    pub(crate) fn is_child(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    /// Connects to the server. The client declares forms and URLs, and `drive` answers their questions between the
    /// legs. `attach` configures the client further.
    pub(crate) fn connect(
        self,
        args: &ConnectionArgs,
        legs: &LegObserver,
        attach: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, Failure> {
        let mut signals = None;
        let transport = match self {
            Self::Url { url, .. } if !cfg!(feature = "https") && url.starts_with("https://") => {
                return Err(Failure::usage(failure::absent("a server at an https URL", "https")));
            }
            Self::Url { url, shown, bearer, headers } => {
                let mut builder = HttpTransport::builder(url);
                let headers_authorize =
                    headers.iter().any(|it| it.name.eq_ignore_ascii_case("authorization"));
                for HttpHeader { name, value } in headers {
                    builder = builder.header(name, value);
                }
                let has_token = headers_authorize || bearer.is_some();
                if let Some(token) = bearer {
                    builder = builder.bearer(token);
                }
                if !has_token {
                    builder = sign_in::authorize(builder)?;
                }
                // The query may hold a key.
                if let Some(name) = shown.as_ref().and_then(|shown| shown.split(['?', '#']).next()) {
                    builder = builder.named(name);
                }
                legs.observe(builder.build().map_err(|error| Failure::usage(error.to_string()))?)
            }
            Self::Child(child) => {
                signals = Some(EndingSignals::new().map_err(|fault| Failure::io("no signals", &fault))?);
                legs.observe(child.spawn()?)
            }
        };
        let timeout = Duration::from_secs(args.timeout);
        let mut builder = Client::builder("antiphon", env!("CARGO_PKG_VERSION"))
            .declare(AskSupport::ELICITATION)
            .mode(args.mode.clone())
            .leg_timeout(timeout)
            // The time limit for URLs that must be opened before a call continues.
            .url_retry_interval(timeout);
        if let Some(longest) = args.max_timeout {
            builder = builder.max_leg_timeout(Duration::from_secs(longest));
        }
        let client = attach(builder).connect(transport);
        if let Some(signals) = signals {
            signals.close(client.clone());
        }
        Ok(client)
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

impl ChildTarget {
    fn spawn(self) -> Result<ChildTransport, Failure> {
        let Self { words, variables, inherit_env, configured } = self;
        let mut words = words.into_iter();
        let program = words.next().ok_or_else(|| Failure::usage("no command after `--`"))?;
        let name = configured.as_ref().map(|it| it.name.clone());
        let name = name.unwrap_or_else(|| program.to_string_lossy().into_owned());
        let mut command = ChildCommand::new(program)
            .args(words)
            .inherit_env(inherit_env)
            .stderr(stderr_of(&name))
            .named(name.clone());
        for (variable, value) in variables {
            command = command.env(variable, value);
        }
        if let Some(Expanded { value, shown }) = configured.as_ref().and_then(|it| it.directory.as_ref()) {
            if !Path::new(value).is_dir() {
                let (name, shown) = (console::truncated(&name, SHOWN), console::truncated(shown, SHOWN));
                return Err(Failure::usage(format!(
                    "the `cwd` of the server `{name}` is no folder: {shown}"
                )));
            }
            command = command.current_dir(value);
        }
        ChildTransport::spawn(command).map_err(|error| {
            // The cause has no value of a variable: it is an error of the operating system.
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let program = configured
                .map(|it| format!(" with `{}`", console::truncated(&it.program, SHOWN)))
                .unwrap_or_default();
            Failure::protocol("transport", format!("{error}{program}{cause}"))
        })
    }
}

/// Returns the destination of the standard error of a server of this name.
fn stderr_of(name: &str) -> ChildStderr {
    if console::is_quiet() {
        return ChildStderr::Discard;
    }
    // The prefix distinguishes the server's lines from ours, and sanitizing keeps them from controlling the terminal.
    let prefix = console::line(name);
    ChildStderr::Lines(Box::new(move |line: &str| {
        console::note(&format!("[{prefix}] {}", console::line(line)))
    }))
}

#[cfg(all(test, not(feature = "https")))]
mod tests {
    use super::*;

    #[test]
    fn an_https_url_is_refused_with_the_name_of_the_feature() {
        let target = Target::url("https://a.example/mcp".into());
        let refused = target
            .connect(&ConnectionArgs::default(), &LegObserver::new(None), |builder| builder)
            .err()
            .unwrap();
        assert!(refused.message.contains("needs the feature `https`"), "{}", refused.message);
    }
}
