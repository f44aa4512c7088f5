//! The requests of the benchmark, and what a right answer contains.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::str::FromStr;

use serde_json::Value;

use crate::error::Error;

const VERSION: &str = "2026-07-28";
/// The members of `_meta` that every request carries.
const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}"#,
);
/// The person's answer.
const ANSWERS: &str = r#"{"region":{"action":"accept","content":{"region":"eu-west-1"}}}"#;
const PROVISIONED: &str = r#"Provisioned "orders" in eu-west-1."#;
/// The number of progress notifications in one call.
const NOTIFICATIONS: usize = 100;
/// The size of large arguments, in bytes.
const LARGE: usize = 1 << 20;

/// One kind of request. All carry id 1, so that recorded answers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// The smallest complete call.
    Echo,
    /// A tool that returns its question by hand: first and second leg.
    Hand(Leg),
    /// A tool that awaits the answer to its question: first and second leg.
    Await(Leg),
    /// One call with progress notifications on an event stream.
    Progress,
    /// Arguments of 1 MiB: one text.
    Text,
    /// Arguments of 1 MiB: a list of small objects.
    Records,
    /// The first page of `tools/list`.
    List,
}

/// One request of a call that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// Answered with a question and sealed state.
    Asks,
    /// Brings the answer and the state back.
    Done,
}

impl Case {
    pub(crate) const ALL: [Self; 9] = [
        Self::Echo,
        Self::Hand(Leg::Asks),
        Self::Hand(Leg::Done),
        Self::Await(Leg::Asks),
        Self::Await(Leg::Done),
        Self::Progress,
        Self::Text,
        Self::Records,
        Self::List,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Hand(Leg::Asks) => "hand-1",
            Self::Hand(Leg::Done) => "hand-2",
            Self::Await(Leg::Asks) => "await-1",
            Self::Await(Leg::Done) => "await-2",
            Self::Progress => "progress",
            Self::Text => "text",
            Self::Records => "records",
            Self::List => "list",
        }
    }

    /// The first leg of the call, if this is its second.
    pub(crate) fn first_leg(self) -> Option<Self> {
        match self {
            Self::Hand(Leg::Done) => Some(Self::Hand(Leg::Asks)),
            Self::Await(Leg::Done) => Some(Self::Await(Leg::Asks)),
            _ => None,
        }
    }

    /// The name under which `bare` looks for the recorded answer: that of the tool or method, and `+state` where the
    /// request carries state.
    pub(crate) fn recorded_as(self) -> String {
        let name = self.tool().map_or("tools_list", |tool| tool);
        format!("{name}{}", if self.first_leg().is_some() { "+state" } else { "" })
    }

    /// Texts that each answer must contain; cheap enough for the hot loop.
    pub(crate) fn expected(self) -> &'static [&'static str] {
        match self {
            Self::Echo => &[r#""text":"hello""#],
            Self::Hand(Leg::Asks) | Self::Await(Leg::Asks) => {
                &[r#""input_required""#, r#""requestState":""#, r#""region""#]
            }
            Self::Hand(Leg::Done) | Self::Await(Leg::Done) => &[r#"Provisioned \"orders\" in eu-west-1."#],
            Self::Progress => &[r#""progress":100"#, r#""text":"done""#],
            Self::Text => &[r#""text":"104"#],
            Self::Records => &["records, "],
            Self::List => &[r#""tool_9999""#],
        }
    }

    /// The whole check, on the JSON-RPC messages of the answer; done once per server, before any measurement.
    pub(crate) fn accepts(self, messages: &[Value]) -> bool {
        let Some((answer, before)) = messages.split_last() else {
            return false;
        };
        let result = &answer["result"];
        let is_complete = result["resultType"] == "complete" && result["isError"] != true;
        let said = |text: &str| is_complete && result["content"][0]["text"] == text;
        let is_right = match self {
            Self::Echo => said("hello"),
            Self::Hand(Leg::Asks) | Self::Await(Leg::Asks) => {
                let ask = &result["inputRequests"]["region"];
                result["resultType"] == "input_required"
                    && result["requestState"].is_string()
                    && ask["method"] == "elicitation/create"
                    && ask["params"]["requestedSchema"]["properties"]["region"].is_object()
            }
            Self::Hand(Leg::Done) | Self::Await(Leg::Done) => said(PROVISIONED),
            Self::Progress => said("done"),
            Self::Text => said(&LARGE.to_string()),
            Self::Records => {
                let (_, count) = records();
                said(&format!("{count} records, {} tags, sum {}", 2 * count, count * (count - 1) / 2))
            }
            Self::List => result["tools"].as_array().is_some_and(|tools| tools.len() > 10_000),
        };
        let notified = before.iter().filter(|message| message["method"] == "notifications/progress").count();
        let expected = if self == Self::Progress { NOTIFICATIONS } else { 0 };
        answer["jsonrpc"] == "2.0" && answer["id"] == 1 && is_right && notified == expected
    }

    fn tool(self) -> Option<&'static str> {
        Some(match self {
            Self::Echo => "echo",
            Self::Hand(_) => "provision_by_hand",
            Self::Await(_) => "provision",
            Self::Progress => "progress",
            Self::Text => "text",
            Self::Records => "records",
            Self::List => return None,
        })
    }

    /// The request as it goes on the wire. `state` is what a second leg echoes.
    pub(crate) fn request(self, addr: SocketAddr, state: &str) -> Vec<u8> {
        let method = if self.tool().is_some() { "tools/call" } else { "tools/list" };
        let name = self.tool().map(|tool| format!("mcp-name: {tool}\r\n")).unwrap_or_default();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{}}}{}}}}}"#,
            self.meta(),
            self.params(state)
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\n\
             host: {addr}\r\n\
             content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {VERSION}\r\n\
             mcp-method: {method}\r\n\
             {name}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        (head + &body).into_bytes()
    }

    fn meta(self) -> String {
        let progress = if self == Self::Progress { r#","progressToken":1"# } else { "" };
        format!("{META}{progress}")
    }

    /// The members of `params` behind `_meta`. Written out, so that their order is the usual one.
    fn params(self, state: &str) -> String {
        let Some(tool) = self.tool() else {
            return String::new();
        };
        let arguments = match self {
            Self::Echo => r#"{"text":"hello"}"#.to_owned(),
            Self::Hand(_) | Self::Await(_) => r#"{"name":"orders"}"#.to_owned(),
            Self::Text => format!(r#"{{"text":"{}"}}"#, "x".repeat(LARGE)),
            Self::Records => format!(r#"{{"records":{}}}"#, records().0),
            Self::Progress | Self::List => "{}".to_owned(),
        };
        let answers = match self.first_leg() {
            Some(_) => format!(r#","inputResponses":{ANSWERS},"requestState":{}"#, Value::from(state)),
            None => String::new(),
        };
        format!(r#","name":"{tool}","arguments":{arguments}{answers}"#)
    }
}

/// A list of small objects, and their number.
fn records() -> (String, usize) {
    let (mut text, mut count) = ("[".to_owned(), 0);
    while text.len() < LARGE {
        let comma = if count == 0 { "" } else { "," };
        let written = write!(text, r#"{comma}{{"id":{count},"name":"item {count}","tags":["red","small"]}}"#);
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
        count += 1;
    }
    text.push(']');
    (text, count)
}

impl FromStr for Case {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|case| case.name() == text);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.into_iter().map(Self::name).collect();
            format!("{text}: expected one of {}", names.join(", ")).into()
        })
    }
}
