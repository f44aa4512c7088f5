//! Definitions that `build` refuses, and the errors.

use crate::common::{Over, log::take_log, request, ring, send};
use antiphon::{
    seal::{Codec, CodecError},
    server::{Completing, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, ServerBuilder, Tool},
    wire::content::{PromptArgument, ResourceContents},
};
use serde_json::{Value, json};

fn named() -> ServerBuilder {
    Server::builder("named", "1")
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| ())
}

fn shaped(schema: Value) -> ServerBuilder {
    named().tool(Tool::with_schema("shaped", schema, async |_: &Ctx, _: Value| ()))
}

fn returning(schema: Value) -> ServerBuilder {
    named().tool(tool("returning").output_schema(&schema))
}

fn in_header(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, async |_: &Ctx, _: NoArguments| String::new())
}

fn resource(uri: &str) -> Resource {
    Resource::new(uri, "x", async |_: &Ctx| ResourceContents::text("x://x", ""))
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, "x", async |_: &Ctx, _: Value| ResourceContents::text("x://x", ""))
}

async fn none(_: Completing) -> [&'static str; 0] {
    []
}

/// A codec that is never asked.
struct Elsewhere;

impl Codec for Elsewhere {
    fn seal(&self, _: &[u8]) -> Result<String, CodecError> {
        Err(CodecError::new("not here"))
    }

    fn open(&self, _: &str) -> Result<Vec<u8>, CodecError> {
        Err(CodecError::new("not here"))
    }
}

fn check(what: &str, builder: ServerBuilder, complaint: Option<&[&str]>) {
    match (builder.build(), complaint) {
        (Ok(_), None) => {}
        (Err(error), Some(words)) => {
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{what}: {text}");
        }
        (built, _) => panic!("{what}: {built:?}"),
    }
}

#[test]
fn a_tool_has_a_plain_name_of_its_own_and_takes_an_object() {
    let longest = "n".repeat(128);
    let odd = |name: &str| named().tool(tool(name));
    let not_plain: &[&str] = &["1 to 128", "letters"];
    let draft_7 = "http://json-schema.org/draft-07/schema#";
    let list_of_items = json!({"a": {"type": "array", "items": [{"type": "string"}]}});
    for (what, builder, complaint) in [
        ("nothing", named(), None),
        (
            "one of each",
            named()
                .tool(tool("a"))
                .prompt(prompt("a"))
                .resource(resource("a://a"))
                .template(template("a://{a}")),
            None,
        ),
        ("every sign of a name", odd("aZ09_-."), None),
        ("a long name", odd(&longest), None),
        ("a longer name", odd(&format!("{longest}n")), Some(not_plain)),
        ("no name", odd(""), Some(not_plain)),
        ("a space", odd("a b"), Some(&["\"a b\"", "1 to 128"])),
        ("a slash", odd("a/b"), Some(not_plain)),
        ("an umlaut", odd("ä"), Some(not_plain)),
        ("a line", odd("a\nb"), Some(&["\"a\\nb\""])),
        (
            "two templates",
            named().template(template("x://{a}")).template(template("x://{a}")),
            Some(&["two templates `x://{a}`"]),
        ),
        ("two tools", odd("same").tool(tool("same")), Some(&["two tools named `same`", "rename"])),
        (
            "text as arguments",
            named().tool(Tool::new("text", async |_: &Ctx, _: String| ())),
            Some(&["`text`", "`object`", "struct"]),
        ),
        ("a list as arguments", shaped(json!({"type": "array"})), Some(&["`shaped`", "`object`"])),
        ("no type", shaped(json!({"properties": {}})), Some(&["`shaped`", "`object`"])),
        ("two types", shaped(json!({"type": ["object", "null"]})), Some(&["`shaped`", "`object`"])),
        ("anything", shaped(json!(true)), Some(&["`shaped`", "`object`"])),
        (
            "a type that is none",
            shaped(json!({"type": "object", "properties": {"a": {"type": "text"}}})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a pattern that is none",
            shaped(json!({"type": "object", "properties": {"a": {"pattern": "("}}})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a reference to nothing",
            shaped(json!({"type": "object", "$ref": "#/$defs/a"})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a reference to the network",
            shaped(json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/a"}}})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a reference to a file",
            shaped(json!({"type": "object", "$ref": "file:///etc/passwd"})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a schema of today",
            shaped(json!({"type": "object", "properties": list_of_items})),
            Some(&["`shaped`", "cannot be used"]),
        ),
        (
            "a schema of draft 7",
            shaped(json!({"$schema": draft_7, "type": "object", "properties": list_of_items})),
            None,
        ),
        (
            "an unknown dialect",
            shaped(json!({"$schema": "https://example.com/mine", "type": "object"})),
            Some(&["`shaped`", "example.com/mine"]),
        ),
    ] {
        check(what, builder, complaint);
    }
}

/// The tool is listed with its pattern, and arguments are checked by the rest of the schema.
#[tokio::test]
async fn a_pattern_that_is_not_supported_is_ignored_with_a_warning() {
    for pattern in [r"^(?!\.)[a-z.]+@[a-z.]+$", "(?<=a)b", r"(a)\1", r"a\Z"] {
        take_log();
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let server = shaped(schema.clone()).build().unwrap();
        let log = take_log();
        assert_eq!(log.matches("a regular expression is ignored").count(), 1, "{log}");
        for part in ["shaped", "`pattern`", "`#/properties/a`", pattern] {
            assert!(log.contains(part), "{part}: {log}");
        }
        let (_, listed) = send(Over::Stdio, &server, &request(1, "tools/list", json!({})), None).await;
        assert_eq!(listed["result"]["tools"][0]["inputSchema"], schema);
        for (a, is_accepted) in [(json!("x"), true), (json!(1), false)] {
            let call = request(2, "tools/call", json!({"name": "shaped", "arguments": {"a": a}}));
            let (_, reply) = send(Over::Stdio, &server, &call, None).await;
            assert_eq!(reply["result"]["isError"] != true, is_accepted, "{reply}");
        }
    }
    take_log();
    assert!(returning(json!({"pattern": "a(?=b)"})).build().is_ok());
    assert!(take_log().contains("output"));
    let refused = shaped(json!({"type": "object", "properties": {"a": {"not": {"pattern": "a(?=b)"}}}}));
    check("inside of `not`", refused, Some(&["`shaped`", "a(?=b)", "`#/properties/a/not`"]));
}

#[test]
fn what_a_tool_promises_can_be_held() {
    for (what, builder, complaint) in [
        ("text as a result", returning(json!({"type": "string"})), None::<&[&str]>),
        ("anything as a result", returning(json!({})), None),
        (
            "a yes as an output schema",
            returning(json!(true)),
            Some(&["`returning`", "output schema", "object"]),
        ),
        (
            "an output type that is none",
            returning(json!({"type": "text"})),
            Some(&["output schema", "`returning`", "cannot be used"]),
        ),
        (
            "an output schema on the network",
            returning(json!({"$ref": "http://127.0.0.1:1/a"})),
            Some(&["output schema", "`returning`", "cannot be used"]),
        ),
        ("a header", shaped(in_header(json!({"type": "string", "x-mcp-header": "A"}))), None),
        (
            "a header of no name",
            shaped(in_header(json!({"type": "string", "x-mcp-header": ""}))),
            Some(&["`shaped`", "x-mcp-header"]),
        ),
        (
            "a header of a number",
            shaped(in_header(json!({"type": "number", "x-mcp-header": "A"}))),
            Some(&["`shaped`", "x-mcp-header"]),
        ),
        (
            "a header inside a list",
            shaped(in_header(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}))),
            Some(&["`shaped`", "x-mcp-header"]),
        ),
    ] {
        check(what, builder, complaint);
    }
}

#[test]
fn names_are_used_once_templates_are_readable_and_keys_are_for_somebody() {
    for (what, builder, complaint) in [
        (
            "two prompts",
            named().prompt(prompt("same")).prompt(prompt("same")),
            Some(&["two prompts named `same`"][..]),
        ),
        (
            "two resources",
            named().resource(resource("a://a")).resource(resource("a://a")),
            Some(&["two resources at `a://a`"]),
        ),
        ("an open template", named().template(template("a://{")), Some(&["`a://{`", "cannot be matched"])),
        ("a reserved template", named().template(template("a://{+x}{/y*}{?z}")), None),
        (
            "a prefix of a value",
            named().template(template("a://{x:3}")),
            Some(&["`a://{x:3}` cannot be matched", "level 4"]),
        ),
        ("a template of no scheme", named().template(template("{+x}")), Some(&["does not result in a URI"])),
        (
            "parameters without an end",
            named().template(template("a://x{?y}/z")),
            Some(&["do not end before `/`"]),
        ),
        ("variables side by side", named().template(template("a://{x}{y}")), Some(&["separates"])),
        ("a variable twice", named().template(template("a://{x}/{x}")), Some(&["twice"])),
        (
            "a completer of nothing",
            named().prompt(prompt("p").argument(PromptArgument::optional("a")).complete("b", none)),
            Some(&["`b`", "prompt `p`", "it has: a"]),
        ),
        (
            "two completers",
            named().prompt(
                prompt("p").argument(PromptArgument::optional("a")).complete("a", none).complete("a", none),
            ),
            Some(&["`a`", "prompt `p`", "two completers"]),
        ),
        (
            "a completer of no variable",
            named().template(template("a://{x}").complete("y", none)),
            Some(&["`y`", "template `a://{x}`", "it has: x"]),
        ),
        ("a completer", named().template(template("a://{x}").complete("x", none)), None),
        ("a completer of a list", named().template(template("a://{/x*}{?q}").complete("x", none)), None),
        ("a page of nothing", named().page_size(0), Some(&["page_size"])),
        ("a page of one", named().page_size(1), None),
        ("two instances", named().instances(2), Some(&["2 instances", ".keys(..)", "antiphon keygen"])),
        ("two instances with keys", named().instances(2).keys(ring(1)), None),
        ("two instances elsewhere", named().instances(2).codec(Box::new(Elsewhere)), None),
        ("no name", Server::builder("", "1"), None),
        (
            "keys without a name",
            Server::builder("", "1").keys(ring(1)),
            Some(&["named server", "`.audience(..)`"]),
        ),
        (
            "a codec without a name",
            Server::builder("", "1").codec(Box::new(Elsewhere)),
            Some(&["`.audience(..)`"]),
        ),
        ("an empty audience", named().keys(ring(1)).audience(""), Some(&["`.audience(..)`"])),
        ("keys and an audience", Server::builder("", "1").keys(ring(1)).audience("a"), None),
    ] {
        check(what, builder, complaint);
    }
}

/// > Clients and servers **MUST** validate schemas according to their declared or default dialect.
#[tokio::test]
async fn a_schema_is_read_in_its_own_dialect() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}
    });
    let server = shaped(schema).build().unwrap();
    for (pair, is_error) in [(json!(["a", 1]), false), (json!([1, "a"]), true)] {
        let message = request(1, "tools/call", json!({"name": "shaped", "arguments": {"pair": pair}}));
        let (_, reply) = send(Over::Http, &server, &message, None).await;
        assert_eq!(reply["result"]["isError"] == true, is_error, "{reply}");
    }
}
