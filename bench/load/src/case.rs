//! The three requests of the benchmark, and the checks of their answers.

use std::net::SocketAddr;

use serde_json::Value;

/// The `_meta` of every request.
const META: &str = concat!(
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#,
);
/// The user's answer.
const ANSWERS: &str = r#"{"region":{"action":"accept","content":{"region":"eu-west-1"}}}"#;

/// One kind of request. All carry id 1, so that recorded answers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// `echo`, the smallest complete call.
    Echo,
    /// `provision`, first leg: answers with a question and sealed state.
    Asks,
    /// `provision`, second leg: brings the answer and the state back.
    Done,
}

impl Case {
    pub(crate) const ALL: [Self; 3] = [Self::Echo, Self::Asks, Self::Done];

    /// Also the stem of the recorded files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Asks => "provision-1",
            Self::Done => "provision-2",
        }
    }

    /// Texts that each answer must contain; cheap enough for the hot loop.
    pub(crate) fn expected(self) -> &'static [&'static str] {
        match self {
            Self::Echo => &[r#""text":"hello""#],
            Self::Asks => &[r#""input_required""#, r#""requestState":""#, r#""region""#],
            Self::Done => &[r#"Provisioned \"orders\" in eu-west-1."#],
        }
    }

    /// The whole check, on parsed JSON; done once per server, before any measurement.
    pub(crate) fn accepts(self, answer: &Value) -> bool {
        let result = &answer["result"];
        let said = |text: &str| {
            result["content"][0]["text"] == text
                && result["resultType"] == "complete"
                && result["isError"] != true
        };
        let right = match self {
            Self::Echo => said("hello"),
            Self::Asks => {
                let ask = &result["inputRequests"]["region"];
                result["resultType"] == "input_required"
                    && result["requestState"].is_string()
                    && ask["method"] == "elicitation/create"
                    && ask["params"]["requestedSchema"]["properties"]["region"].is_object()
            }
            Self::Done => said("Provisioned \"orders\" in eu-west-1."),
        };
        answer["jsonrpc"] == "2.0" && answer["id"] == 1 && right
    }

    fn tool(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Asks | Self::Done => "provision",
        }
    }

    /// The request as it goes on the wire. `state` is what the second leg echoes.
    pub(crate) fn request(self, addr: SocketAddr, state: &str) -> Vec<u8> {
        let tool = self.tool();
        let body = self.body(state);
        let mut bytes = format!(
            "POST /mcp HTTP/1.1\r\n\
             host: {addr}\r\n\
             content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\n\
             mcp-name: {tool}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        bytes
    }

    /// Written out, so that the order of the members is the usual one.
    fn body(self, state: &str) -> String {
        let name = self.tool();
        let rest = match self {
            Self::Echo => r#""arguments":{"text":"hello"}"#.to_owned(),
            Self::Asks => r#""arguments":{"name":"orders"}"#.to_owned(),
            Self::Done => format!(
                r#""arguments":{{"name":"orders"}},"inputResponses":{ANSWERS},"requestState":{}"#,
                Value::from(state)
            ),
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{META},"name":"{name}",{rest}}}}}"#
        )
    }
}
