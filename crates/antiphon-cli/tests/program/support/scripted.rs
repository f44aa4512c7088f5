//! A server that follows a script, as a shell command on standard input and output.

use super::{Run, run};
use serde_json::{Value, json};

/// A step of the server.
pub(crate) enum Step {
    /// The reply to `tools/call`: its member `result` or `error`.
    Reply(Value),
    /// A request `elicitation/create` with these params, before the next reply. In a session only.
    Ask(Value),
    /// The server ends without a reply.
    End,
}

/// A server whose calls end with the actions that it received, such as `done accept decline`, when its steps are over.
pub(crate) struct Scripted {
    mode: &'static str,
    script: String,
}

impl Scripted {
    /// A server of sessions.
    pub(crate) fn session(steps: &[Step]) -> Self {
        Self::new("legacy", steps)
    }

    /// A server of 2026-07-28.
    pub(crate) fn modern(steps: &[Step]) -> Self {
        Self::new("2026-07-28", steps)
    }

    fn new(mode: &'static str, steps: &[Step]) -> Self {
        let (mut cases, mut number, mut case) = (String::new(), 1, String::new());
        for step in steps {
            match step {
                Step::Ask(params) => {
                    case += &format!("ask '{params}'; ");
                    continue;
                }
                Step::Reply(reply) => {
                    let reply = reply.to_string();
                    case += &format!("reply '{}'", &reply[1..reply.len() - 1]);
                }
                Step::End => case += "exit",
            }
            cases += &format!("{number}) {case} ;;\n");
            (number, case) = (number + 1, String::new());
        }
        let script = format!(
            r#"calls=0 said=
reply() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
heard() {{ case "$1" in *'"action":"accept"'*) said="$said accept" ;; *'"action":"decline"'*) said="$said decline" ;; esac; }}
ask() {{ printf '{{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":%s}}\n' "$1"; read -r answer; heard "$answer"; }}
while read -r line; do
case "$line" in *'"method":"notifications/'*) continue ;; esac
id=${{line#*\"id\":}}; id=${{id%%,*}}
case "$line" in
*'"initialize"'*) reply '"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
*'"tools/call"'*)
heard "$line"
calls=$((calls + 1))
case $calls in
{cases}*) {case}reply '"result":{{"content":[{{"type":"text","text":"done'"$said"'"}}]}}' ;;
esac ;;
*) reply '"result":{{}}' ;;
esac
done"#
        );
        Self { mode, script }
    }

    /// Runs the program with these words and this server.
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        run(words.iter().chain(&["--mode", self.mode, "--", "sh", "-c", &self.script]))
    }

    /// The words that name this server.
    pub(crate) fn target(&self) -> [&str; 6] {
        ["--mode", self.mode, "--", "sh", "-c", &self.script]
    }
}

/// The params of a question of a page.
pub(crate) fn page(url: &str) -> Value {
    json!({"mode": "url", "url": url, "message": "Log in.", "elicitationId": format!("id of {url}")})
}

/// The params of a question of a form with one required field.
pub(crate) fn form(field: &str) -> Value {
    json!({"mode": "form", "message": "Who?", "requestedSchema": {
        "type": "object", "properties": {field: {"type": "string"}}, "required": [field]
    }})
}

/// The error -32042: these pages must be opened first.
pub(crate) fn pages_first(urls: &[&str]) -> Step {
    let pages: Vec<Value> = urls.iter().map(|url| page(url)).collect();
    Step::Reply(json!({"error": {"code": -32042, "message": "first", "data": {"elicitations": pages}}}))
}

/// A round of questions with a state, by key.
pub(crate) fn round(asks: &[(&str, Value)]) -> Step {
    let ask = |params: &Value| json!({"method": "elicitation/create", "params": params});
    let asks: Value = asks.iter().map(|(key, params)| ((*key).to_owned(), ask(params))).collect();
    Step::Reply(
        json!({"result": {"resultType": "input_required", "requestState": "s", "inputRequests": asks}}),
    )
}

/// An error of the server.
pub(crate) fn error(code: i64, message: &str, data: &Value) -> Step {
    Step::Reply(json!({"error": {"code": code, "message": message, "data": data}}))
}
