//! Every example of the specification is read into its type and written again without loss. The folders of
//! `tests/examples` carry the names that the specification's schema gives the types.

use crate::common::exact;
use crate::modelled::{Codec, MODELLED};
use std::{fs, path::Path};

/// Members that an example leaves out and that are always written: the place, the member and its value.
const ADDED: &[(&str, &str, &str, &str)] = &[
    (
        "input-required-result-with-elicitation-and-sampling-and-request-state.json",
        "/inputRequests/github_login/params",
        "mode",
        r#""form""#,
    ),
    ("input-required-result-with-request-state-only.json", "", "inputRequests", "{}"),
    ("read-resource-result-response.json", "/result", "ttlMs", "0"),
    ("read-resource-result-response.json", "/result", "cacheScope", r#""private""#),
];

/// Members of an example that its type in the schema does not have: the file and the member.
const FOREIGN: &[(&str, &str)] = &[("list-roots-request.json", "id")];

/// The example as it is to be written.
fn expected(file: &str, text: &str) -> String {
    let mut added = ADDED.iter().filter(|(name, ..)| *name == file).peekable();
    let mut foreign = FOREIGN.iter().filter(|(name, _)| *name == file).peekable();
    if added.peek().is_none() && foreign.peek().is_none() {
        return text.to_owned();
    }
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    for (_, place, member, added) in added {
        let object = value.pointer_mut(place).unwrap().as_object_mut().unwrap();
        let old = object.insert((*member).to_owned(), serde_json::from_str(added).unwrap());
        assert_eq!(old, None, "{file} has {member} itself");
    }
    for (_, member) in foreign {
        value.as_object_mut().unwrap().remove(*member).unwrap();
    }
    value.to_string()
}

fn check(file: &str, text: &str, codec: Codec) {
    match codec(text) {
        Ok(written) => assert_eq!(exact(&written), exact(&expected(file, text)), "{file}"),
        Err(fault) => panic!("{file}: {fault}"),
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_example_is_read_and_written_without_loss() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut examples = 0;
    for folder in entries(&root) {
        let Some((_, codecs)) = MODELLED.iter().find(|(definition, _)| *definition == folder) else {
            panic!("no type reads the examples of {folder}")
        };
        for file in entries(&root.join(&folder)) {
            let text = fs::read_to_string(root.join(&folder).join(&file)).unwrap();
            for codec in *codecs {
                check(&file, &text, *codec);
            }
            examples += 1;
        }
    }
    assert_eq!(examples, 129);
}

#[test]
fn the_comparison_tells_numbers_apart_by_their_text() {
    for (one, other) in [("1", "1.0"), ("[1e3]", "[1000.0]"), (r#"{"a":1}"#, r#"{"a":1.0}"#)] {
        assert_ne!(exact(one), exact(other));
    }
    assert_eq!(exact(r#"{ "b": [1, "\u0041"], "a": null }"#), exact(r#"{"a":null,"b":[1,"A"]}"#));
}
