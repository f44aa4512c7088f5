//! The place of sign-in in a build without the feature `oauth`.

use crate::{
    args::{LoginArgs, SignedInArgs},
    failure::{self, Exit, Failure},
};
use antiphon::client::transport::HttpTransportBuilder;

/// Changes nothing.
pub(crate) fn authorize(builder: HttpTransportBuilder) -> Result<HttpTransportBuilder, Failure> {
    Ok(builder)
}

/// Fails.
pub(crate) async fn login(_: &LoginArgs) -> Result<Exit, Failure> {
    Err(absent("login"))
}

/// Fails.
pub(crate) async fn logout(_: &SignedInArgs) -> Result<Exit, Failure> {
    Err(absent("logout"))
}

/// Fails.
pub(crate) async fn whoami(_: &SignedInArgs) -> Result<Exit, Failure> {
    Err(absent("whoami"))
}

/// Fails.
pub(crate) async fn token(_: &SignedInArgs) -> Result<Exit, Failure> {
    Err(absent("token"))
}

fn absent(command: &str) -> Failure {
    Failure::usage(failure::absent(&format!("`{command}`"), "oauth"))
}
