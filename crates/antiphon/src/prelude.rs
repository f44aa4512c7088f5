//! The names that most programs use, in one `use`. None of them collides with a name of axum, so that a program that
//! mounts a server in axum writes both:
//!
//! ```text
//! use antiphon::prelude::*;
//! use axum::{Error, Form, Json, Router, extract::{Path, Query, State}, response::Result, routing::get};
//! ```
//!
//! | here | elsewhere in this crate | because axum has |
//! |---|---|---|
//! | `StructuredJson` | `server::Json` | `axum::Json` |
//! | `SharedState` | `server::State` | `axum::extract::State` |
//! | the derive macro `Form` | with the trait `Form` | the type `axum::Form`, which may stand beside a derive macro |
//! | not here | `antiphon::Result`, `antiphon::Error`: write them with their path | `axum::response::Result`, `axum::Error` |
//!
#![cfg_attr(all(feature = "macros", feature = "stdio"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "macros", feature = "stdio")), doc = "```ignore")]
//! use antiphon::prelude::*;
//!
//! struct Cloud;
//!
//! #[derive(serde::Deserialize, Form)]
//! struct Region {
//!     region: String,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Database {
//!     region: String,
//! }
//!
//! /// Orders a database.
//! #[tool]
//! async fn order(ctx: &Ctx, _cloud: SharedState<Cloud>) -> antiphon::Result<StructuredJson<Database>> {
//!     let Region { region } = ctx.elicit("Which region?").await?;
//!     Ok(StructuredJson(Database { region }))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("databases", "1.0").state(Cloud).tool(order).build()?;
//! serve_stdio(server).await?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "server")]
pub use crate::{
    ShowError,
    seal::{KeyRing, Principal},
    server::{
        Answer, Ask, AskError, Ctx, Json as StructuredJson, Limits, Prompt, Reply, Resource,
        ResourceTemplate, Retry, Server, ServerBuilder, State as SharedState, StepError, Tool,
    },
};

#[cfg(all(feature = "server", feature = "http"))]
pub use crate::serve::http::{HttpOptions, HttpService, serve_http};

#[cfg(all(feature = "server", feature = "stdio"))]
pub use crate::serve::stdio::serve_stdio;

#[cfg(feature = "client")]
pub use crate::client::{Call, Client, ClientBuilder, ClientError, transport::Transport};

#[cfg(all(feature = "client", feature = "http"))]
pub use crate::client::transport::HttpTransport;

#[cfg(all(feature = "client", feature = "stdio"))]
pub use crate::client::transport::ChildTransport;

#[cfg(all(feature = "macros", feature = "server"))]
pub use antiphon_macros::{Form, prompt, resolver, resource, server, tool};
