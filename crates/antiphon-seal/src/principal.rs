//! Who is calling, as far as a token is bound to it.

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
    /// A user, by the issuer's name for it (the `sub` of a token). An empty name counts as none.
    pub fn user(subject: impl Into<String>) -> Self {
        Self { issuer: None, client_id: None, subject: part(subject) }
    }

    /// Client software without a user, by its client id. All its users are this one principal. An empty id
    /// counts as none.
    pub fn client(client_id: impl Into<String>) -> Self {
        Self { issuer: None, client_id: part(client_id), subject: None }
    }

    /// The same principal, as known to this issuer (the `iss` of a token). An empty name counts as none.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = part(issuer);
        self
    }

    /// The same principal, acting through this client. An empty id counts as none.
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = part(client_id);
        self
    }

    /// The same client, acting for this user. An empty name counts as none.
    #[must_use]
    pub fn with_subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = part(subject);
        self
    }

    /// Whether a user is named. Without one the principal is shared by everybody who uses the same client
    /// software.
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

/// Some providers send an empty claim for a missing one; as a name it would be shared by everybody.
fn part(value: impl Into<String>) -> Option<String> {
    Some(value.into()).filter(|value| !value.is_empty())
}
