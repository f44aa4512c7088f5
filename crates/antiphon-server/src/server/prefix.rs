//! Offers of another service, with a prefix before their names.

use crate::{define::Service, server::builder::ServerBuilder};
use std::sync::Arc;

impl ServerBuilder {
    /// Offers the same as [`with`](Self::with), with this text before the names of tools and prompts: two values of one
    /// type can then be offered side by side.
    ///
    /// ```
    /// # use antiphon::{server, server::Server};
    /// struct Database(&'static str);
    ///
    /// #[server]
    /// impl Database {
    ///     /// Tells where the database lives.
    ///     #[tool]
    ///     async fn region(&self) -> String {
    ///         self.0.to_owned()
    ///     }
    /// }
    ///
    /// // The tools are `eu_region` and `us_region`.
    /// let server = Server::builder("databases", "1.0.0")
    ///     .with_prefix("eu_", Database("eu-west-1"))
    ///     .with_prefix("us_", Database("us-east-1"))
    ///     .build()?;
    /// # Ok::<(), antiphon::server::BuildError>(())
    /// ```
    ///
    /// Resources and templates keep their URIs, and one server offers each URI once.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>, service: impl Service) -> Self {
        let (prefix, service) = (prefix.into(), Arc::new(service));
        self.offer(move |states, offered| {
            let (tools, prompts) = (offered.tools.len(), offered.prompts.len());
            service.offer(states, offered)?;
            for tool in offered.tools.iter_mut().skip(tools) {
                tool.definition.name.insert_str(0, &prefix);
            }
            for prompt in offered.prompts.iter_mut().skip(prompts) {
                prompt.definition.name.insert_str(0, &prefix);
            }
            Ok(())
        })
    }
}
