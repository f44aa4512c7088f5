//! The arguments that name the server.

use antiphon::{client::Mode, wire::ProtocolVersion};
use clap::Args;
use std::{ffi::OsString, fmt, path::PathBuf};

#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The URL of the server
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The time limit of one request, in seconds; the time for answers does not count
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// The protocol versions to use: auto, legacy (sessions), or one version, such as 2025-06-18
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = mode)]
    pub(crate) mode: Mode,
    /// The bearer token for a URL
    #[arg(long, value_name = "TOKEN", env = "MCP_BEARER", hide_env_values = true)]
    pub(crate) bearer: Option<String>,
    /// A header for a URL, sent with every request; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<HttpHeader>,
    /// A variable for a command; without a value, that of this program is passed on; may be repeated
    ///
    /// A command gets only HOME, LOGNAME, PATH, SHELL, TERM and USER of this program's environment.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) variables: Vec<EnvVariable>,
    /// Pass the whole environment of this program on to a command, with all tokens and keys in it
    #[arg(long)]
    pub(crate) inherit_env: bool,
    /// A JSON file with an object "mcpServers" or "servers", as hosts have it, or `-` for standard input
    ///
    /// "command", "args", "env" and "cwd", or "url" and "headers". ${NAME}, ${env:NAME} and ${NAME:-DEFAULT} in the values are
    /// variables of this program's environment, and errors show the names only. Comments and trailing commas are read. A warning
    /// names what is not used. The file is a regular one of at most 1 MiB. Headers of the connection and of the protocol, such as
    /// Host and Mcp-Method, are refused.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "command"])]
    pub(crate) servers: Option<PathBuf>,
    /// The name of the server in the file of `--servers`, which a file with one server does not need
    #[arg(long, value_name = "NAME", requires = "servers")]
    pub(crate) server: Option<String>,
    /// The command that starts the server on its standard input and output
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A header. Its value may be a secret.
#[derive(Clone)]
pub(crate) struct HttpHeader {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A variable of the environment. Without a value, that of this program is meant. The value may be a secret.
#[derive(Clone)]
pub(crate) struct EnvVariable {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvVariable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Parses the value of `--mode`.
fn mode(text: &str) -> Result<Mode, String> {
    let version = ProtocolVersion::new(text);
    match text {
        "auto" => Ok(Mode::Auto),
        "legacy" => Ok(Mode::Legacy),
        _ if version.is_modern() || version.is_legacy() => Ok(Mode::Pinned(version)),
        _ => {
            let known = ProtocolVersion::MODERN.iter().chain(ProtocolVersion::LEGACY);
            let known: Vec<&str> = known.map(ProtocolVersion::as_str).collect();
            Err(format!("must be one of auto, legacy, {}", known.join(", ")))
        }
    }
}

/// Parses the value of `--header`.
fn header(text: &str) -> Result<HttpHeader, &'static str> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(HttpHeader { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err("write NAME:VALUE"),
    }
}

/// Parses the value of `--env`.
fn variable(text: &str) -> Result<EnvVariable, &'static str> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() || text.contains('\0') {
        return Err("write NAME or NAME=VALUE");
    }
    Ok(EnvVariable { name: name.to_owned(), value })
}
