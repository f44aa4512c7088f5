//! Challenges of `WWW-Authenticate`: each part is a part of the input, and what a challenge is written as reads the same again.

#![no_main]

use antiphon_wire::Challenge;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let found = Challenge::parse_all([text]);
    assert!(found.len() <= 16);
    for challenge in &found {
        assert!(text.contains(challenge.scheme()) && challenge.is(challenge.scheme()));
        let token = challenge.token().map(|token| format!(" {token}"));
        assert!(token.as_ref().is_none_or(|token| text.contains(token.trim_start())));
        // Names whose values are looked up by the client and by the resource server.
        let mut written = format!("{}{}", challenge.scheme(), token.unwrap_or_default());
        let mut separator = " ";
        for name in ["error", "scope", "resource_metadata", "realm"] {
            if let Some(value) = challenge.get(name).filter(|_| challenge.token().is_none()) {
                let quoted: String =
                    value.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| c == '"' || c == '\\').chain([c])).collect();
                written += &format!("{separator}{name}=\"{quoted}\"");
                separator = ", ";
            }
        }
        let [again] = &Challenge::parse_all([&*written])[..] else { panic!("{written}") };
        for name in ["error", "scope", "resource_metadata", "realm"] {
            assert!(challenge.token().is_some() || again.get(name) == challenge.get(name), "{written}");
        }
        assert_eq!(again.token(), challenge.token());
    }
});
