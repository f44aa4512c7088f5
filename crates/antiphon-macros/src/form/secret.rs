//! Names of fields that suggest a secret.
//!
//! This file is the same in `antiphon-macros`, for derived forms, and in `antiphon-wire`, for forms that are built by hand or
//! come from a server. `scripts/house` compares the two.

/// Returns the word in `name` that suggests a secret.
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API keys,
/// > access tokens, or payment credentials
pub(super) fn secret_in(name: &str) -> Option<&'static str> {
    const SECRETS: [&str; 10] =
        ["password", "passwd", "pwd", "passphrase", "token", "secret", "apikey", "card", "cvv", "cvc"];
    let words = words(name);
    let pair = words.windows(2).any(|pair| pair == ["api", "key"]).then_some("api_key");
    pair.or_else(|| SECRETS.into_iter().find(|secret| words.iter().any(|word| word == secret)))
}

/// Returns the words of a name in any casing, in lower case and without digits.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = '_';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (last.is_lowercase() && letter.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
        last = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized() {
        for (name, secret) in [
            ("password", Some("password")),
            ("PASSWORD", Some("password")),
            ("_user_password_", Some("password")),
            ("password2", Some("password")),
            ("accessToken", Some("token")),
            ("client-secret", Some("secret")),
            ("api_key", Some("api_key")),
            ("my_apiKey", Some("api_key")),
            ("APIKEY", Some("apikey")),
            ("card_number", Some("card")),
            ("CVV", Some("cvv")),
            ("card_cvc", Some("card")),
            ("Enter your password:", Some("password")),
            ("ssh-passphrase", Some("passphrase")),
            ("key", None),
            ("cardinal", None),
            ("secretary", None),
            ("max_tokens", None),
            ("api", None),
        ] {
            assert_eq!(secret_in(name), secret, "{name}");
        }
    }
}
