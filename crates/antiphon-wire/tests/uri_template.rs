//! URI templates against the tables of RFC 6570, section 1.2, in both directions; hostile URIs; and properties of random values.

use antiphon_wire::{
    ResourceTemplate,
    uri_template::{MAX_URI, UriTemplate},
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};

fn parsed(template: &str) -> UriTemplate {
    UriTemplate::parse(template).unwrap_or_else(|fault| panic!("{template}: {fault}"))
}

fn matched(template: &str, uri: &str) -> Option<Value> {
    parsed(template).matches(uri).map(Value::Object)
}

/// The examples of levels 1 to 3, and of level 4 those with lists. The values are read back unless `false` stands behind: `empty` at a position is
/// not matched, a list without `*` is read as one text, and a value of `{+hello}` with a space is read back as it was.
const TABLE: &[(&str, &str, bool)] = &[
    // Level 1.
    ("{var}", "value", true),
    ("{hello}", "Hello%20World%21", true),
    // Level 2.
    ("{+var}", "value", true),
    ("{+hello}", "Hello%20World!", true),
    ("{+path}/here", "/foo/bar/here", true),
    ("here?ref={+path}", "here?ref=/foo/bar", true),
    ("X{#var}", "X#value", true),
    ("X{#hello}", "X#Hello%20World!", true),
    // Level 3.
    ("map?{x,y}", "map?1024,768", true),
    ("{x,hello,y}", "1024,Hello%20World%21,768", true),
    ("{+x,hello,y}", "1024,Hello%20World!,768", true),
    ("{+path,x}/here", "/foo/bar,1024/here", true),
    ("{#x,hello,y}", "#1024,Hello%20World!,768", true),
    ("{#path,x}/here", "#/foo/bar,1024/here", true),
    ("X{.var}", "X.value", true),
    ("X{.x,y}", "X.1024.768", true),
    ("{/var}", "/value", true),
    ("{/var,x}/here", "/value/1024/here", true),
    ("{;x,y}", ";x=1024;y=768", true),
    ("{;x,y,empty}", ";x=1024;y=768;empty", true),
    ("{?x,y}", "?x=1024&y=768", true),
    ("{?x,y,empty}", "?x=1024&y=768&empty=", true),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024", true),
    ("{&x,y,empty}", "&x=1024&y=768&empty=", true),
    // Section 3.2: empty and undefined values.
    ("O{empty}X", "OX", false),
    ("O{undef}X", "OX", false),
    ("X{.empty}", "X.", false),
    ("{/var,empty}", "/value/", false),
    ("{/var,undef}", "/value", false),
    ("{;v,empty,who}", ";v=6;empty;who=fred", true),
    ("{;v,bar,who}", ";v=6;who=fred", true),
    ("{?x,y,undef}", "?x=1024&y=768", true),
    ("{+half}", "50%25", true),
    ("{half}", "50%25", true),
    // Lists.
    ("{list}", "red,green,blue", false),
    ("{list*}", "red,green,blue", true),
    ("{+list*}", "red,green,blue", true),
    ("{+path,list*}", "/foo/bar,red,green,blue", true),
    ("{#list*}", "#red,green,blue", true),
    ("X{.list}", "X.red,green,blue", false),
    ("X{.list*}", "X.red.green.blue", true),
    ("{/list}", "/red,green,blue", false),
    ("{/list*}", "/red/green/blue", true),
    ("{/var,list*}", "/value/red/green/blue", true),
    ("{;list}", ";list=red,green,blue", false),
    ("{;list*}", ";list=red;list=green;list=blue", true),
    ("{?list}", "?list=red,green,blue", false),
    ("{?list*}", "?list=red&list=green&list=blue", true),
    ("{&list*}", "&list=red&list=green&list=blue", true),
    ("{/none*}", "", false),
    ("{?none*}", "", true),
];

fn values() -> Map<String, Value> {
    let values = json!({
        "var": "value", "hello": "Hello World!", "half": "50%", "empty": "", "path": "/foo/bar", "x": "1024", "y": "768", "v": "6",
        "who": "fred", "list": ["red", "green", "blue"], "none": [],
    });
    serde_json::from_value(values).unwrap()
}

#[test]
fn the_tables_of_the_rfc_in_both_directions() {
    for (template, uri, is_read) in TABLE {
        let parsed = parsed(template);
        assert_eq!(parsed.expand(values()).unwrap(), *uri, "{template}");
        let known = |name: &str| values().get(name).map(|value| (name.to_owned(), value.clone()));
        let expected: Map<String, Value> = parsed.names().filter_map(known).collect();
        assert_eq!(
            parsed.matches(uri) == Some(expected),
            *is_read,
            "{template} {uri}: {:?}",
            parsed.matches(uri)
        );
    }
}

#[test]
fn what_matches_and_what_does_not() {
    for (template, uri, expected) in [
        ("r://{id}", "r://7", Some(json!({"id": "7"}))),
        ("r://{id}", "r://a%20b%C3%A9", Some(json!({"id": "a bé"}))),
        ("r://{id}", "r://a%2Fb", Some(json!({"id": "a/b"}))),
        ("r://{id}", "r://%2525", Some(json!({"id": "%25"}))),
        ("r://{id}", "r://a,b", Some(json!({"id": "a,b"}))),
        ("r://{id}", "r://", None),
        ("r://{id}", "r://a/b", None),
        ("r://{id}", "r://a?b", None),
        ("r://{id}", "r://a#b", None),
        ("r://{id}", "r://%4", None),
        ("r://{id}", "r://%+1", None),
        ("r://{id}", "r://%FF", None),
        ("r://{id}", "s://7", None),
        // The text after a value is found by trying.
        ("s://{item}.txt", "s://a.txt.txt", Some(json!({"item": "a.txt"}))),
        ("a://{x}-{y}", "a://1-2-3", Some(json!({"x": "1", "y": "2-3"}))),
        ("a://{x}-{y}-z", "a://1-2-3-z", Some(json!({"x": "1", "y": "2-3"}))),
        ("d://{host}/{table}/rows", "d://h/t/rows/", None),
        ("f://{+path}", "f:///a/b?c#d", Some(json!({"path": "/a/b?c#d"}))),
        ("f://{+path}.md", "f://a.md/b.md", Some(json!({"path": "a.md/b"}))),
        ("f://{+path}/{name}", "f://a/b/c", Some(json!({"path": "a/b", "name": "c"}))),
        ("f://{+path}", "f://", None),
        ("f://h{/path*}", "f://h/a/b%2Fc", Some(json!({"path": ["a", "b/c"]}))),
        ("f://h{/path*}/edit", "f://h/a/edit/edit", Some(json!({"path": ["a", "edit"]}))),
        ("f://h{/path*}/edit", "f://h/edit", None),
        ("f://h{/path*}", "f://h", None),
        ("f://h{/path*}", "f://h/", None),
        ("f://h{/path*}", "f://h/a//b", None),
        ("f://h{/path*}", "f://h/a/", None),
        ("f://{name}{.kinds*}", "f://a.tar.gz", Some(json!({"name": "a", "kinds": ["tar", "gz"]}))),
        // Parameters: in any order, each may be missing, and none is unknown or there twice.
        ("q://{id}{?q,limit}", "q://1", Some(json!({"id": "1"}))),
        ("q://{id}{?q,limit}", "q://1?limit=5&q=a/b+c", Some(json!({"id": "1", "q": "a/b+c", "limit": "5"}))),
        ("q://{id}{?q,limit}", "q://1?q", Some(json!({"id": "1", "q": ""}))),
        ("q://{id}{?q,limit}", "q://1?", None),
        ("q://{id}{?q,limit}", "q://1?&q=1", None),
        ("q://{id}{?q,limit}", "q://1?q=1&", None),
        ("q://{id}{?q,limit}", "q://1?q=1&q=2", None),
        ("q://{id}{?q,limit}", "q://1?q=1&other=2", None),
        ("q://{id}{?q,limit}", "q://1?qq=1", None),
        ("q://{id}{?q,limit}", "q://1&q=1", Some(json!({"id": "1&q=1"}))),
        ("q://{id}{?tag*}", "q://1", Some(json!({"id": "1", "tag": []}))),
        ("q://{id}{?tag*,q}", "q://1?tag=a&q=1&tag=b", Some(json!({"id": "1", "tag": ["a", "b"], "q": "1"}))),
        ("q://{+path}{?q}", "q://a/b?q=1", Some(json!({"path": "a/b", "q": "1"}))),
        ("q://{+path}{?q}", "q://a/b?other=1", None),
        ("q://a{?q}{&more}{#part}", "q://a?q=1&more=2#3", Some(json!({"q": "1", "more": "2", "part": "3"}))),
        ("q://a{?q}&fixed=1", "q://a?q=1&fixed=1", Some(json!({"q": "1"}))),
        ("q://a{;x}/b", "q://a;x=1/b", Some(json!({"x": "1"}))),
        ("q://é/{x}", "q://%C3%A9/1", Some(json!({"x": "1"}))),
    ] {
        assert_eq!(matched(template, uri), expected, "{template} {uri}");
    }
}

#[test]
fn templates_and_values_that_cannot_be_used() {
    let many: String = (0..17).map(|n| format!("/{{v{n}}}")).collect();
    for (template, words) in [
        ("a://{", "no `}`"),
        ("a://}", "no `{`"),
        ("a://{x}}", "no `{`"),
        ("a://{}", "not an expression"),
        ("a://{x,}", "not an expression"),
        ("a://{x y}", "not an expression"),
        ("a://{x**}", "not an expression"),
        ("a://{{x}}", "not an expression"),
        ("a://{\u{1b}}", r"`{\u{1b}}`"),
        ("a://{x:3}", "level 4"),
        ("a://{?x:3}", "level 4"),
        ("a://{!x}", "no meaning"),
        ("a://{x}{y}", "nothing separates"),
        ("a://{/x}{+y}", "nothing separates"),
        ("a://{?x}{y}", "nothing separates"),
        ("a://{?x}/y", "do not end before `/`"),
        ("a://{;x}y", "do not end before `y`"),
        ("a://{?x}{?y}", "do not end before `?`"),
        ("a://{x}/{x}", "`x` occurs twice"),
        ("a://{?x,x}", "`x` occurs twice"),
        (&many, "more than 16"),
    ] {
        let fault = UriTemplate::parse(template).unwrap_err().to_string();
        assert!(fault.contains(words), "{template}: {fault}");
    }
    let template = ResourceTemplate::new("a://{x}", "a");
    assert_eq!(template.expand(json!({"x": 1, "y": 2})).unwrap(), "a://1");
    for (values, words) in [
        (json!({"x": {"a": 1}}), "the value of `x`"),
        (json!({"x": [["a"]]}), "the value of `x`"),
        (json!(["a"]), "not an object"),
    ] {
        let fault = template.expand(values).unwrap_err().to_string();
        assert!(fault.contains(words), "{fault}");
    }
}

/// With a matcher that tries ways again, each of these would not end. This test would then not end either.
#[test]
fn no_uri_is_expensive() {
    let values: String = (0..16).map(|n| format!("{{+v{n}}}a")).collect();
    let lists: String = (0..16).map(|n| format!("{{/v{n}*}}")).collect();
    for (template, repeated) in [
        (format!("{values}b"), "a"),
        (format!("{lists}b"), "/a"),
        ("{+x}{&a*}{&b*}!".to_owned(), "&a=1"),
        ("{+x}{?a*}!".to_owned(), "?"),
        ("{+x}{;a*,b*}/!".to_owned(), ";a"),
    ] {
        let template = UriTemplate::parse(&template.replace('!', "&!")).unwrap();
        let uri = repeated.repeat(MAX_URI / repeated.len());
        assert_eq!(template.matches(&uri), None, "{repeated}");
    }
    let long = |length: usize| format!("a://{}", "x".repeat(length - 4));
    assert!(parsed("a://{x}").matches(&long(MAX_URI)).is_some());
    assert!(parsed("a://{x}").matches(&long(MAX_URI + 1)).is_none());
}

/// Of the templates that match, the first is that with the lowest rank.
#[test]
fn the_more_literal_template_has_the_lower_rank() {
    for (first, second) in [
        ("a://x/{y}", "a://{x}/{y}"),
        ("a://{x}/edit", "a://{x}/{y}"),
        ("a://{x}", "a://{+x}"),
        ("a://x{/y}", "a://x{/y*}"),
        ("a://{x}/{y}", "a://{+x}"),
    ] {
        assert!(parsed(first).rank() < parsed(second).rank(), "{first} {second}");
    }
    assert_eq!(parsed("a://{x}").rank(), parsed("a://{y}{?q}").rank());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,8}",
        "[a-z/?&=;#,.%+]{1,6}",
        any::<String>().prop_filter("empty", |text| !text.is_empty())
    ]
}

proptest! {
    /// Values that are percent-encoded are read as they were written, whatever characters they have.
    #[test]
    fn values_are_read_as_they_were_written(
        id in text(), path in vec(text(), 1..4), q in option::of(any::<String>()), tags in vec(any::<String>(), 0..4), part in text(),
    ) {
        let template = parsed("a://{id}{/path*}/end{;q}{?tags*}{#part}");
        // A value of `{#part}` keeps the percent-encoding that it has: the percent sign is written as such.
        let part = part.replace('%', "");
        prop_assume!(!part.is_empty());
        let mut values = json!({"id": id, "path": path, "tags": tags, "part": part});
        if let Some(q) = q {
            values["q"] = q.into();
        }
        let uri = template.expand(&values).unwrap();
        // A longer URI is not read.
        prop_assume!(uri.len() <= MAX_URI);
        prop_assert_eq!(template.matches(&uri).map(Value::Object), Some(values), "{}", uri);
    }

    /// The values that are read from a URI give this URI again, also if the template leaves a choice. A comma may then be percent-encoded.
    #[test]
    fn what_is_read_gives_the_same_uri(x in "[a-z/,.]{1,6}", y in "[a-z/,.]{1,6}", kind in "[a-z.]{1,6}") {
        for template in ["{+x,y}{.kind}", "{+x}-{y}{/kind}", "{x}{.kind,y}", "{#x,y}/{kind}"] {
            let template = parsed(template);
            let uri = template.expand(json!({"x": x, "y": y, "kind": kind})).unwrap();
            let read = template.matches(&uri).expect("an expansion matches");
            let plain = |uri: &str| uri.replace("%2C", ",");
            prop_assert_eq!(plain(&template.expand(read).unwrap()), plain(&uri));
        }
    }

    /// Any text is read or not, without a panic.
    #[test]
    fn any_text_is_a_uri_or_not(template in "[a-c{}+#./;?&*,=]{0,24}", uri in "[a-c+#./;?&,=%0-2é]{0,24}") {
        if let Ok(template) = UriTemplate::parse(&template)
            && let Some(values) = template.matches(&uri)
        {
            prop_assert!(values.len() <= template.names().count());
        }
    }
}
