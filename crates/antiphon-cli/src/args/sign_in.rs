//! The arguments of the commands about sign-in.

use clap::Args;
use std::fmt;

#[derive(Args, Debug)]
#[cfg_attr(
    not(feature = "oauth"),
    allow(dead_code, reason = "only the error for the absent feature is there")
)]
pub(crate) struct SignedInArgs {
    /// The URL of the server
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The name of the account, if there are several ones at the server; other commands use the one without a name
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) account: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[cfg_attr(
    not(feature = "oauth"),
    allow(dead_code, reason = "only the error for the absent feature is there")
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) server: SignedInArgs,
    /// Ask for this scope too; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// The client id that the authorization server gave to this program; without it, the program registers
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The secret of the client id
    #[arg(
        long,
        value_name = "SECRET",
        env = "MCP_CLIENT_SECRET",
        hide_env_values = true,
        requires = "client_id"
    )]
    pub(crate) client_secret: Option<String>,
    /// The port to which the browser returns, if the client id has a fixed one; any free port unless given
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Sign in at another device: open a page there, and enter the code that is shown here. For machines without a browser
    #[arg(long, conflicts_with = "port")]
    pub(crate) device: bool,
}

impl fmt::Debug for LoginArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginArgs").field("server", &self.server).finish_non_exhaustive()
    }
}
