//! `listen`: one line for each change, until the server ends the subscription.

use crate::support::{
    command, run,
    served::{RunningServer, changing, empty, tool},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    time::Duration,
};

/// The running program.
struct Listener {
    process: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// Dropping it ends the watchdog, which kills the program after 20 seconds so that the test fails.
    _watchdog: Sender<()>,
}

impl Listener {
    fn start(arguments: &[&str], served: &RunningServer) -> Self {
        let mut command = command(["listen"].iter().chain(arguments).chain(&[served.url.as_str()]));
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = process.stdout.take().map(BufReader::new);
        let (watchdog, over) = mpsc::channel();
        let kill = format!("kill -KILL {}", process.id());
        std::thread::spawn(move || {
            if over.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("sh").args(["-c", &kill]).status();
            }
        });
        Self { process, stdout, _watchdog: watchdog }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Waits for the end of standard output. Returns the exit code and the text on standard error.
    fn end(mut self) -> (i32, String) {
        if self.stdout.is_some() {
            assert_eq!(self.line(), "");
        }
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code().unwrap(), said)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const ENDED: &str = "the server ended the subscription\n";

#[test]
fn each_change_is_one_line() {
    let served = RunningServer::start(changing());
    let all = [
        "--no-reconnect",
        "--tools",
        "--prompts",
        "--resources",
        "--resource",
        "file:///a",
        "--resource",
        "b://\u{202e}b",
    ];
    let mut listener = Listener::start(&all, &served);
    assert_eq!(
        listener.line(),
        "acknowledged: tools, prompts, resources, resource file:///a, resource b://\\u{202e}b"
    );
    served.server.add_tool(tool("late")).unwrap();
    assert_eq!(listener.line(), "tools changed");
    assert!(served.server.remove_prompt("review"));
    assert_eq!(listener.line(), "prompts changed");
    assert!(served.server.remove_resource("file:///a"));
    assert_eq!(listener.line(), "resources changed");
    served.server.resource_updated("file:///a");
    assert_eq!(listener.line(), "resource updated file:///a");
    served.server.drain();
    assert_eq!(listener.end(), (0, ENDED.to_owned()));
}

#[test]
fn each_change_is_one_object() {
    let served = RunningServer::start(changing());
    let mut listener =
        Listener::start(&["--no-reconnect", "--json", "--tools", "--resource", "file:///a"], &served);
    let agreed = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(listener.json(), json!({"event": "acknowledged", "notifications": agreed}));
    // The client does not listen for this change.
    assert!(served.server.remove_prompt("review"));
    served.server.add_tool(tool("late")).unwrap();
    assert_eq!(listener.json(), json!({"event": "tools_list_changed"}));
    served.server.resource_updated("file:///a");
    assert_eq!(listener.json(), json!({"event": "resource_updated", "uri": "file:///a"}));
    served.server.drain();
    assert_eq!(listener.end(), (0, ENDED.to_owned()));
}

#[test]
fn missing_notifications_are_reported() {
    let served = RunningServer::start(empty());
    let mut listener = Listener::start(&["--tools", "--resource", "a://b"], &served);
    assert_eq!(listener.line(), "");
    let (code, said) = listener.end();
    assert!(code == 4 && said.contains("acknowledged none of the requested changes"), "{code} {said}");
}

#[test]
fn a_broken_connection_is_reopened() {
    let mut served = RunningServer::start(changing());
    let mut listener = Listener::start(&["--tools"], &served);
    assert_eq!(listener.line(), "acknowledged: tools");
    served.restart();
    assert_eq!(listener.line(), "acknowledged: tools");
    served.server.add_tool(tool("late")).unwrap();
    assert_eq!(listener.line(), "tools changed");
}

/// The server stops, and another instance takes its place.
#[test]
fn a_subscription_that_the_server_closes_is_reopened() {
    for (arguments, acknowledged, closed) in [
        (&["--tools"][..], "acknowledged: tools", "closed by the server: it is opened again"),
        (
            &["--tools", "--json"],
            r#"{"event":"acknowledged","notifications":{"toolsListChanged":true}}"#,
            r#"{"event":"closed"}"#,
        ),
    ] {
        let mut served = RunningServer::start(changing());
        let mut listener = Listener::start(arguments, &served);
        assert_eq!(listener.line(), acknowledged);
        served.server.drain();
        assert_eq!(listener.line(), closed);
        served.server = changing();
        served.restart();
        assert_eq!(listener.line(), acknowledged);
    }
}

#[test]
fn a_closed_pipe_ends_the_program() {
    let served = RunningServer::start(changing());
    let mut listener = Listener::start(&["--tools"], &served);
    assert_eq!(listener.line(), "acknowledged: tools");
    listener.stdout = None;
    served.server.add_tool(tool("late")).unwrap();
    assert_eq!(listener.end(), (0, String::new()));
}

#[cfg(unix)]
#[test]
fn ctrl_c_exits_with_130() {
    let served = RunningServer::start(changing());
    let mut listener = Listener::start(&["--tools"], &served);
    assert_eq!(listener.line(), "acknowledged: tools");
    let interrupt = format!("kill -INT {}", listener.process.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    assert_eq!(listener.end(), (130, String::new()));
}

/// A server without subscriptions.
#[cfg(unix)]
const REFUSES: &str = r#"read -r request
echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'
cat > /dev/null"#;

#[cfg(unix)]
#[test]
fn a_server_without_subscriptions_exits_with_4() {
    let server = ["--mode", "2026-07-28", "--", "sh", "-c", REFUSES];
    run(["listen", "--tools"].iter().chain(&server)).fails(4, "Method not found");
    let failed = run(["listen", "--tools", "--json"].iter().chain(&server));
    let object = failed.json();
    assert_eq!((failed.code, &object["status"]), (4, &json!("error")), "{failed:?}");
    assert_eq!(object["error"]["code"], -32601, "{object}");
}

#[test]
fn an_unreachable_server_exits_with_4_at_once() {
    // A free port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    run(["listen", "--tools", &format!("http://127.0.0.1:{port}/mcp")]).fails(4, "no response came back");
    run(["listen", "--tools", "--", "false"]).fails(4, "ended");
}

#[test]
fn the_arguments_are_required() {
    run(["listen"]).fails(2, "no server: give its URL");
    run(["listen", "--tools"]).fails(2, "no server: give its URL");
}
