//! The settings of a program that signs in.

use crate::{
    credentials::Credentials, device::ShowDevice, discover::Tolerances, grant::Grant, handler::SignInHandler,
    register::ClientMetadata, store::TokenStore,
};
use std::{sync::Arc, time::SystemTime};

/// All settings.
pub(crate) struct Settings {
    pub(crate) metadata: ClientMetadata,
    pub(crate) credentials: Option<Credentials>,
    /// The client id of a metadata document, and its key if it names one.
    pub(crate) document: Option<Credentials>,
    pub(crate) registers: bool,
    pub(crate) handler: Option<Arc<dyn SignInHandler>>,
    pub(crate) device: Option<Arc<ShowDevice>>,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) account: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) offline: bool,
    pub(crate) grant: Grant,
    pub(crate) tolerances: Tolerances,
    pub(crate) resource: ResourceParameter,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) clock: Clock,
}

/// The clock of the tokens.
pub(crate) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The `resource` parameter of requests.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ResourceParameter {
    /// The identifier in the metadata of the server, byte by byte.
    #[default]
    Standard,
    /// None. Not allowed by the specification; for authorization servers that refuse requests with it, such as Microsoft Entra.
    Omit,
    /// Another one. Not allowed by the specification either.
    Instead(String),
}
