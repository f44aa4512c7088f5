//! HTTP 400 for an unknown session. The specification demands 404; some servers say it in the body of a 400.

use antiphon_wire::{ErrorCode, Incoming, lenient};

/// The words of an unknown session, in lower case.
///
/// | words | source |
/// |---|---|
/// | no valid session id | the examples of the TypeScript SDK, and servers that began as copies of them, such as server-everything |
/// | session not found | the TypeScript SDK's transport (code -32001) behind frameworks that change its 404 to 400 |
/// | invalid or missing session id | the same examples, for GET and DELETE |
/// | invalid or expired session id | the Python SDK, as above |
/// | invalid session | servers on Express that look sessions up themselves |
const UNKNOWN: [&str; 5] = [
    "no valid session id",
    "session not found",
    "invalid or missing session id",
    "invalid or expired session id",
    "invalid session",
];

/// The codes that come with these words.
const CODES: [ErrorCode; 2] = [ErrorCode(-32000), ErrorCode(-32001)];

/// The maximum length of a body that is not JSON-RPC, in bytes. A longer one, such as a page, is about something else.
const MAX_PLAIN: usize = 256;

/// Returns `true` if the body of a 400 says that the server does not know the session. The server then did not act on the
/// request.
pub(crate) fn is_unknown_session(body: &[u8]) -> bool {
    match lenient::parse(&lenient::repaired(body)) {
        Ok(Incoming::Response(response)) => match response.outcome {
            Err(error) => CODES.contains(&error.code) && names_it(&error.message),
            Ok(_) => false,
        },
        Ok(_) => false,
        Err(_) => body.len() <= MAX_PLAIN && names_it(&String::from_utf8_lossy(body)),
    }
}

fn names_it(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    UNKNOWN.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_that_name_an_unknown_session() {
        let error = |code: i64, message: &str| {
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string()
        };
        for (body, is) in [
            (error(-32000, "Bad Request: No valid session ID provided"), true),
            (error(-32001, "Session not found"), true),
            (error(-32000, "Invalid session"), true),
            (error(-32602, "Session not found"), false),
            (error(-32000, "Bad Request: Server not initialized"), false),
            ("Invalid or missing session ID".to_owned(), true),
            (json!({"error": "Invalid or missing session ID"}).to_string(), true),
            ("Bad Request".to_owned(), false),
            (String::new(), false),
            (format!("{}Session not found", " ".repeat(MAX_PLAIN)), false),
            (json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "session not found"}}).to_string(), false),
        ] {
            assert_eq!(is_unknown_session(body.as_bytes()), is, "{body}");
        }
    }
}
