//! Lists page by page, for how long they may be kept, and lists that change.

use crate::common;
use crate::common::{
    Over, answers, fixture,
    gate::gate,
    post::{correct, post},
    request, send, state_of, with,
};
use antiphon::{
    server::{CacheHint, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, ServerBuilder, Tool},
    wire::{CacheScope, ReadResourceResult, Ttl, content::ResourceContents},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "done")
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async |_: &Ctx, _: NoArguments| "said".to_owned())
}

fn resource(uri: &str) -> Resource {
    Resource::new(uri, "r", async |_: &Ctx| ResourceContents::text("x://x", "read"))
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, "m", async |_: &Ctx, _: Value| ResourceContents::text("x://x", "read"))
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// A server with all of each, in this order.
fn of(names: &[&str]) -> ServerBuilder {
    names.iter().fold(Server::builder("pages", "1").list_changed(true), |builder, name| {
        builder
            .tool(tool(name))
            .prompt(prompt(name))
            .resource(resource(&format!("{name}://r")))
            .template(template(&format!("{name}://{{x}}")))
    })
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    send(Over::Http, server, &request(1, method, params), None).await.1
}

/// The names on the page at this cursor, and where it goes on.
async fn page(server: &Server, (method, list, member): (&str, &str, &str), at: &Value) -> (String, Value) {
    let reply = ask(server, method, json!({"cursor": at})).await;
    let entries = reply["result"][list].as_array().unwrap_or_else(|| panic!("{method} {at}: {reply}"));
    let names = entries
        .iter()
        .map(|one| one[member].as_str().and_then(|name| name.split(':').next()).expect("a name"));
    let names: Vec<&str> = names.collect();
    // Whoever reads must not take null for an end, or an end for null.
    assert_ne!(reply["result"].get("nextCursor"), Some(&Value::Null));
    (names.join(" "), reply["result"]["nextCursor"].clone())
}

/// Every page from the beginning, and the cursors between them.
async fn pages(server: &Server, list: (&str, &str, &str)) -> (Vec<String>, Vec<Value>) {
    let (mut pages, mut cursors, mut at) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let (names, next) = page(server, list, &at).await;
        pages.push(names);
        if next.is_null() {
            return (pages, cursors);
        }
        cursors.push(next.clone());
        at = next;
    }
}

#[tokio::test]
async fn pages_have_the_size_that_was_set_and_miss_nothing() {
    let names = ["a", "b", "c", "d", "e"];
    for (size, expected) in [
        (1, &["a", "b", "c", "d", "e"][..]),
        (2, &["a b", "c d", "e"]),
        (4, &["a b c d", "e"]),
        (5, &["a b c d e"]),
        (6, &["a b c d e"]),
        (usize::MAX, &["a b c d e"]),
    ] {
        let server = of(&names).page_size(size).build().unwrap();
        for list in LISTS {
            let (pages, cursors) = pages(&server, list).await;
            assert_eq!(pages, expected, "{size} {list:?}");
            assert!(cursors.iter().all(|cursor| cursor.as_str().unwrap().len() == 40), "{cursors:?}");
        }
    }
    assert_eq!(pages(&of(&[]).page_size(1).build().unwrap(), LISTS[0]).await.0, [""]);
    assert_eq!(pages(&of(&names).build().unwrap(), LISTS[0]).await.0, ["a b c d e"]);
}

/// Nothing of a cursor lives in one process: not the list, not the size of its pages.
#[tokio::test]
async fn any_instance_goes_on_and_only_with_its_own_cursors() {
    let names = ["a", "b", "c", "d", "e"];
    let first = of(&names).page_size(2).build().unwrap();
    let second = of(&names).page_size(3).build().unwrap();
    let other = Server::builder("other", "1").tool(tool("a")).tool(tool("b")).page_size(2).build().unwrap();
    for list in LISTS {
        let (_, cursor) = page(&first, list, &Value::Null).await;
        assert_eq!(page(&second, list, &cursor).await, ("c d e".to_owned(), Value::Null));
        let text = cursor.as_str().unwrap();
        let mut wrong = vec![
            json!(""),
            json!("2"),
            json!(2),
            json!({}),
            json!([text]),
            json!(true),
            json!(text[1..]),
            json!(format!("{text}0")),
            json!(text.to_uppercase()),
            json!(format!(" {text}")),
            json!("0".repeat(40)),
            json!("x".repeat(100_000)),
        ];
        for (method, member, _) in LISTS.iter().filter(|other| **other != list) {
            wrong.push(ask(&first, method, json!({})).await["result"]["nextCursor"].clone());
            assert!(wrong.last().unwrap().is_string(), "{member}");
        }
        for cursor in wrong {
            for server in [&first, &second] {
                let message = request(1, list.0, json!({"cursor": cursor}));
                let (status, reply) = send(Over::Http, server, &message, None).await;
                assert_eq!(
                    (status, &reply["error"]["code"], &reply["error"]["message"]),
                    (400, &json!(-32602), &json!("Invalid cursor")),
                    "{cursor}"
                );
            }
        }
    }
    let (_, cursor) = page(&first, LISTS[0], &Value::Null).await;
    assert_eq!(
        ask(&other, "tools/list", json!({"cursor": cursor})).await["error"]["message"],
        "Invalid cursor"
    );
}

/// A list that changed between two pages goes on behind what was seen last.
#[tokio::test]
async fn a_list_that_changed_is_continued() {
    type Change = fn(&Server);
    for (what, change, expected) in [
        ("nothing", (|_| ()) as Change, "c d"),
        ("one more at the end", |server| server.add_tool(tool("f")).unwrap(), "c d"),
        ("one less before", |server| assert!(server.remove_tool("a")), "c d"),
        ("the last one gone", |server| assert!(server.remove_tool("b")), "c d"),
        ("the next one gone", |server| assert!(server.remove_tool("c")), "d e"),
        (
            "the last one behind the others",
            |server| {
                assert!(server.remove_tool("b"));
                server.add_tool(tool("b")).unwrap();
            },
            "",
        ),
        (
            "all gone",
            |server| ["a", "b", "c", "d", "e"].iter().for_each(|name| assert!(server.remove_tool(name))),
            "",
        ),
    ] {
        let server = of(&["a", "b", "c", "d", "e"]).page_size(2).build().unwrap();
        let (_, cursor) = page(&server, LISTS[0], &Value::Null).await;
        change(&server);
        assert_eq!(page(&server, LISTS[0], &cursor).await.0, expected, "{what}");
    }
}

#[tokio::test]
async fn what_is_added_is_there_and_what_is_removed_is_not() {
    let server = of(&["a"]).build().unwrap();
    let twin = server.clone();
    server.add_tool(tool("b")).unwrap();
    server.add_prompt(prompt("b")).unwrap();
    server.add_resource(resource("b://r")).unwrap();
    server.add_template(template("b://{x}")).unwrap();
    for list in LISTS {
        assert_eq!(page(&twin, list, &Value::Null).await.0, "a b");
    }
    for (method, params) in [
        ("tools/call", json!({"name": "b"})),
        ("prompts/get", json!({"name": "b"})),
        ("resources/read", json!({"uri": "b://r"})),
        ("resources/read", json!({"uri": "b://other"})),
    ] {
        let reply = ask(&twin, method, params).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{method}: {reply}");
    }
    for (what, refused) in [
        ("two tools named `b`", server.add_tool(tool("b"))),
        ("two prompts named `b`", server.add_prompt(prompt("b"))),
        ("two resources at `b://r`", server.add_resource(resource("b://r"))),
        ("two templates `b://{x}`", server.add_template(template("b://{x}"))),
        ("cannot be matched", server.add_template(template("b://{"))),
        ("1 to 128", server.add_tool(tool("a b"))),
    ] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(what), "{text}");
    }
    for (is_there, removed) in [(true, "a"), (false, "a"), (false, "A"), (true, "b")] {
        assert_eq!(server.remove_tool(removed), is_there);
        assert_eq!(server.remove_prompt(removed), is_there);
        assert_eq!(server.remove_resource(&format!("{removed}://r")), is_there);
        assert_eq!(server.remove_template(&format!("{removed}://{{x}}")), is_there);
    }
    for list in LISTS {
        assert_eq!(page(&twin, list, &Value::Null).await.0, "");
    }
    for (method, params, message) in [
        ("tools/call", json!({"name": "b"}), "Unknown tool: b"),
        ("prompts/get", json!({"name": "b"}), "Unknown prompt: b"),
        ("resources/read", json!({"uri": "b://r"}), "Resource not found"),
    ] {
        assert_eq!(ask(&twin, method, params).await["error"]["message"], message);
    }
}

#[tokio::test]
async fn a_server_that_did_not_declare_it_does_not_change() {
    let server = Server::builder("fixed", "1").tool(tool("a")).prompt(prompt("a")).build().unwrap();
    assert!(server.add_tool(tool("b")).unwrap_err().to_string().contains(".list_changed(true)"));
    assert!(server.add_resource(resource("b://r")).is_err());
    assert!(!server.remove_tool("a") && !server.remove_prompt("a"));
    assert_eq!(page(&server, LISTS[0], &Value::Null).await.0, "a");
}

/// A list that is read meanwhile was whole at some moment; and no change is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_at_once_lose_nothing() {
    let server = of(&[]).build().unwrap();
    let changing = (0..8).map(|one| {
        let server = server.clone();
        tokio::task::spawn_blocking(move || {
            for number in 0..20 {
                server.add_tool(tool(&format!("keep-{one}-{number}"))).unwrap();
                server.add_prompt(prompt(&format!("keep-{one}-{number}"))).unwrap();
                server.add_tool(tool(&format!("drop-{one}-{number}"))).unwrap();
                assert!(server.remove_tool(&format!("drop-{one}-{number}")));
            }
        })
    });
    let changing: Vec<_> = changing.collect();
    loop {
        let over = changing.iter().all(tokio::task::JoinHandle::is_finished);
        let (tools, _) = page(&server, LISTS[0], &Value::Null).await;
        let names: Vec<&str> = tools.split_terminator(' ').collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        if over {
            assert_eq!(names.len(), 160);
            assert!(names.iter().all(|name| name.starts_with("keep")), "{names:?}");
            break;
        }
        tokio::task::yield_now().await;
    }
    for changed in changing {
        changed.await.unwrap();
    }
    assert_eq!(page(&server, LISTS[1], &Value::Null).await.0.split(' ').count(), 160);
}

#[tokio::test]
async fn a_call_under_way_keeps_its_tool() {
    let (hold, mut gate) = gate();
    let server = of(&[]).tool(hold).build().unwrap();
    let message = request(1, "tools/call", json!({"name": "hold", "arguments": {"name": "a"}}));
    let service = antiphon::serve::http::HttpService::new(server.clone(), Default::default());
    let call = tokio::spawn(async move { post(&service, correct(&message)).await.json() });
    gate.started("a").await;
    assert!(server.remove_tool("hold"));
    gate.open("a");
    assert_eq!(call.await.unwrap()["result"]["content"][0]["text"], "a");
}

/// > Servers MUST include caching hints on results with `resultType: "complete"`
#[tokio::test]
async fn lists_and_discovery_carry_the_hint_on_every_page() {
    let minute = Duration::from_secs(60);
    for (hint, ttl, scope) in [
        (None, 0, "private"),
        (Some(CacheHint::default()), 0, "private"),
        (Some(CacheHint::public(minute)), 60_000, "public"),
        (Some(CacheHint::private(minute)), 60_000, "private"),
        (Some(CacheHint::public(Duration::from_nanos(1_999_999))), 1, "public"),
        (Some(CacheHint::public(Duration::ZERO)), 0, "public"),
        (Some(CacheHint::private(Duration::MAX)), (1_i64 << 53) - 1, "private"),
    ] {
        let builder = of(&["a", "b", "c"]).page_size(2);
        let server = hint.into_iter().fold(builder, ServerBuilder::cache).build().unwrap();
        for method in LISTS.map(|(method, ..)| method).into_iter().chain(["server/discover"]) {
            let mut at = Value::Null;
            loop {
                let reply = ask(&server, method, json!({"cursor": at})).await;
                let result = &reply["result"];
                assert_eq!(
                    (&result["ttlMs"], &result["cacheScope"]),
                    (&json!(ttl), &json!(scope)),
                    "{method}"
                );
                assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "pages");
                at = result["nextCursor"].clone();
                if at.is_null() {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn what_was_read_carries_the_hint_of_its_resource() {
    let hint = CacheHint::public(Duration::from_secs(9));
    let own = async |_: &Ctx| {
        let mut result = ReadResourceResult::new(vec![ResourceContents::text("x://x", "own")]);
        (result.ttl_ms, result.cache_scope) = (Ttl(5), CacheScope::Private);
        result
    };
    let server = fixture(|builder| {
        builder
            .resource(resource("x://plain"))
            .resource(resource("x://hinted").cache(hint))
            .resource(Resource::new("x://own", "own", own).cache(hint))
            .template(template("y://{x}").cache(hint))
            .template(template("z://{x}"))
            // Lists and what they list are two things.
            .cache(CacheHint::public(Duration::from_secs(1)))
    })
    .server;
    for (uri, ttl, scope) in [
        ("x://plain", 0, "private"),
        ("x://hinted", 9000, "public"),
        ("x://own", 5, "private"),
        ("y://1", 9000, "public"),
        ("z://1", 0, "private"),
    ] {
        let reply = ask(&server, "resources/read", json!({"uri": uri})).await;
        let result = &reply["result"];
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)), "{uri}: {reply}");
    }
}

/// > Results produced by retrying a request [...] **MUST NOT** be cached
#[tokio::test]
async fn what_was_read_with_answers_is_not_kept() {
    let asking = Resource::new("x://asks", "asks", async |ctx: &Ctx| {
        let answer = ctx.by_hand().form::<common::Region>(&common::region())?;
        Ok::<_, antiphon::Error>(match answer {
            None => antiphon::server::Reply::from(common::region()),
            Some(_) => antiphon::server::Reply::Complete(ResourceContents::text("x://asks", "for one")),
        })
    });
    let asking = asking.cache(CacheHint::public(Duration::from_secs(9)));
    let server = fixture(|builder| builder.resource(asking)).server;
    let params = json!({"uri": "x://asks"});
    let reply = ask(&server, "resources/read", params.clone()).await;
    assert_eq!(reply["result"]["resultType"], "input_required");
    // > Interim results [...] are not cacheable and carry no caching hints.
    assert!(reply["result"].get("ttlMs").is_none() && reply["result"].get("cacheScope").is_none());
    let retry = with(&params, json!({"requestState": state_of(&reply), "inputResponses": answers()}));
    let reply = ask(&server, "resources/read", retry).await;
    assert_eq!((&reply["result"]["ttlMs"], &reply["result"]["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(reply["result"]["contents"][0]["text"], "for one");
}
