//! The caller that a token is bound to.

/// An authenticated caller: the identity provider, the client software and the user it acts for.
///
/// A token is bound to all three parts, absence included; a part that appears, vanishes or changes in the
/// middle of a call makes its tokens unusable. Take the parts from verified credentials, never the credential
/// itself: a bearer token is renewed between two requests of one call.
///
/// There is no `==`: principals are compared as keyed digests, in constant time, when a token is opened.
#[derive(Debug, Clone)]
pub struct Principal {
    issuer: Option<String>,
    client_id: Option<String>,
    subject: Option<String>,
}

impl Principal {
    /// Returns a user, by the issuer's name for the user (the `sub` of a token). An empty name counts as
    /// none.
    pub fn user(subject: impl Into<String>) -> Self {
        Self { issuer: None, client_id: None, subject: part(subject) }
    }

    /// Returns client software without a user, by its client id. All its users are this one principal. An
    /// empty id counts as none.
    pub fn client(client_id: impl Into<String>) -> Self {
        Self { issuer: None, client_id: part(client_id), subject: None }
    }

    /// Returns the same principal with this issuer (the `iss` of a token). An empty name counts as none.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = part(issuer);
        self
    }

    /// Returns the same principal, acting through this client. An empty id counts as none.
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = part(client_id);
        self
    }

    /// Returns the same client, acting for this user. An empty name counts as none.
    #[must_use]
    pub fn with_subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = part(subject);
        self
    }

    /// Returns `true` if the principal names a user. Without a user, everybody who uses the same client
    /// software shares the principal.
    #[must_use]
    pub fn has_subject(&self) -> bool {
        self.subject.is_some()
    }

    /// The identity provider.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// The client software.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// The user.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }
}

/// Returns `None` for an empty name. Some providers send an empty claim for a missing one; as a name,
/// everybody would share it.
fn part(value: impl Into<String>) -> Option<String> {
    Some(value.into()).filter(|value| !value.is_empty())
}
