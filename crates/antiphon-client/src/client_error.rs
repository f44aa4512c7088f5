//! What ends a request that asks nothing.

use crate::{ServerIdentity, fault::RequestFault};
use antiphon_wire::ErrorObject;
use std::{error::Error as StdError, fmt};

/// Why a request that asks nothing, such as a list, has no result.
#[derive(Debug)]
pub struct ClientError {
    server: ServerIdentity,
    method: &'static str,
    kind: Box<ClientErrorKind>,
}

/// What ended a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The request has no result.
    Request(RequestFault),
    /// A list led back to a page it had shown already: the server's fault.
    CursorRepeated,
    /// A list has more pages than are followed.
    TooManyPages {
        /// So many are followed.
        limit: usize,
    },
    /// A list is longer than what is read of one.
    ListTooLong {
        /// So many bytes are read.
        limit: usize,
    },
}

impl ClientError {
    pub(crate) fn new(server: ServerIdentity, method: &'static str, kind: ClientErrorKind) -> Self {
        Self { server, method, kind: Box::new(kind) }
    }

    /// What ended the request.
    pub fn kind(&self) -> &ClientErrorKind {
        &self.kind
    }

    /// The server that was asked.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// The method of the request.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// What the server said, where it answered with an error.
    pub fn server_error(&self) -> Option<&ErrorObject> {
        match &*self.kind {
            ClientErrorKind::Request(fault) => fault.server_error(),
            _ => None,
        }
    }

    /// Whether no response came in time.
    pub fn is_timeout(&self) -> bool {
        matches!(&*self.kind, ClientErrorKind::Request(RequestFault::Timeout(_)))
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: ", self.method, self.server)?;
        match &*self.kind {
            ClientErrorKind::Request(fault) => fault.fmt(f),
            ClientErrorKind::CursorRepeated => {
                f.write_str("the server's list leads back to a page it had shown already")
            }
            ClientErrorKind::TooManyPages { limit } => {
                write!(f, "the server's list does not end after {limit} pages")
            }
            ClientErrorKind::ListTooLong { limit } => {
                write!(f, "the server's list has more than {limit} bytes")
            }
        }
    }
}

impl StdError for ClientError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.kind {
            ClientErrorKind::Request(fault) => fault.source(),
            _ => None,
        }
    }
}
