//! The switches of the test servers.

/// An attack, or a fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attack {
    /// The metadata of the resource is about another resource.
    OtherResource,
    /// The metadata of the authorization server is of another issuer.
    IssuerOfMetadata,
    /// The answer to a sign-in is of another issuer.
    IssuerOfAnswer,
    /// The answer does not name its issuer, although the metadata says that it does.
    NoIssuerInAnswer,
    /// The answer has the state of another sign-in.
    OtherState,
    /// The answer is an error with a text for terminals, of another issuer.
    ForgedError,
    /// The answer is an error with a text for terminals.
    TerminalText,
    /// The metadata does not mention PKCE.
    NoPkce,
    /// The metadata supports PKCE without a hash only.
    PlainPkce,
    /// The authorization endpoint is a script.
    ScriptEndpoint,
    /// The token endpoint is the metadata service of a cloud.
    CloudEndpoint,
    /// The token endpoint is not secure.
    InsecureEndpoint,
    /// The token endpoint redirects to another server.
    RedirectedToken,
    /// A gateway answers for the token endpoint that it is down.
    BadGateway,
    /// The documents are longer than allowed.
    HugeDocument,
    /// The tokens cannot stand in a header.
    TokenWithNewline,
    /// The tokens are of an unknown type.
    UnknownTokenType,
    /// The tokens live for longer than a clock can count.
    EndlessToken,
    /// The resource server refuses every token.
    RefusesAll,
    /// The resource server asks for more scopes each time.
    EndlessScopes,
    /// The registration demands a method of authentication that nobody requested.
    OtherMethod,
    /// The issuer of the metadata and of the answer has a slash at its end, which the metadata of the resource has not.
    RootSlash,
    /// Requests with a `resource` are refused.
    RefusesResource,
    /// The code for another device is a text for terminals.
    TerminalCode,
    /// The page for the code is a script.
    ScriptPage,
}

/// The answer of a person at another device, to all sign-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceAnswer {
    /// None yet.
    #[default]
    Pending,
    /// None yet, and the program asks too often.
    SlowDown,
    /// The person agrees.
    Agrees,
    /// The person refuses.
    Refuses,
    /// The code has expired.
    Expired,
}
