//! Callbacks: their order, and their arguments.

use crate::client_support::*;
use antiphon::client::ClientBuilder;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Runs a round of three asks; returns what the callbacks noted.
async fn noted(client: ClientBuilder, log: Arc<Mutex<Vec<String>>>) -> Vec<String> {
    let form = form();
    let asks =
        format!(r#"{{"resultType":"input_required","inputRequests":{{"c":{form},"a":{form},"b":{form}}}}}"#);
    let fake = Fake::script([Reply::Text(asks), done("ok")]);
    fake.client(client).call_tool("t", ()).await.unwrap();
    let [c, a, b] = ["\"c\":", "\"a\":", "\"b\":"].map(|key| fake.texts()[1].find(key));
    assert!(c < a && a < b, "{}", fake.texts()[1]);
    log.lock().unwrap().clone()
}

#[tokio::test]
async fn asks_run_together_in_the_servers_order_or_one_at_a_time() {
    // Together, the first one waits for the last one.
    fn client(log: &Arc<Mutex<Vec<String>>>, together: bool) -> ClientBuilder {
        let (log, last) = (Arc::clone(log), Arc::new(Notify::new()));
        builder().on_elicit_form(move |ask| {
            let (log, last) = (Arc::clone(&log), Arc::clone(&last));
            async move {
                let key = ask.context.key.clone();
                log.lock().unwrap().push(format!("+{key}"));
                match &*key {
                    "b" if together => last.notify_one(),
                    "c" if together => last.notified().await,
                    _ if together => {}
                    _ => tokio::task::yield_now().await,
                }
                log.lock().unwrap().push(format!("-{key}"));
                Ok(ask.accept(json!({"region": key}))?)
            }
        })
    }
    let log = Arc::default();
    assert_eq!(noted(client(&log, true), Arc::clone(&log)).await, ["+c", "+a", "-a", "+b", "-b", "-c"]);
    let log = Arc::default();
    let one = client(&log, false).one_at_a_time(true);
    assert_eq!(noted(one, Arc::clone(&log)).await, ["+c", "-c", "+a", "-a", "+b", "-b"]);
}

#[tokio::test]
async fn an_ask_says_where_it_comes_from() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let client = builder().on_elicit_form(move |ask| {
        let of = &ask.context;
        let arguments = of.arguments.as_ref().map(|text| text.get().to_owned());
        let who = (of.server.to_string(), of.server.display_name().to_owned());
        log.lock().unwrap().push((
            who,
            of.method.to_string(),
            of.target.clone(),
            arguments,
            of.round,
            of.key.clone(),
        ));
        async move { Ok(ask.accept(json!({"region": "eu"}))?) }
    });
    let mut second = asking(json!({"b": form()}), None);
    if let Reply::Result(result) = &mut second {
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "db", "title": "Data\u{7} Base", "version": "3"}});
    }
    let fake =
        Fake::script([asking(json!({"a": form()}), None), second, Reply::Result(json!({"messages": []}))]);
    let client = fake.client(client);
    client.get_prompt("review", json!({"pr": "7"})).await.unwrap();
    let arguments = Some(r#"{"pr":"7"}"#.to_owned());
    let expected = |who: &str, name: &str, round, key: &str| {
        (
            (who.to_owned(), name.to_owned()),
            "prompts/get".to_owned(),
            "review".to_owned(),
            arguments.clone(),
            round,
            key.to_owned(),
        )
    };
    assert_eq!(
        *seen.lock().unwrap(),
        [
            expected("fake:server", "fake:server", 1, "a"),
            expected("Data Base (fake:server)", "Data Base", 2, "b")
        ]
    );
    assert_eq!(client.server_info().unwrap().version, "3");
}
