//! Names that sound like a secret.

/// The word in `name` that sounds like a secret.
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information such as passwords, API keys,
/// > access tokens, or payment credentials
pub(super) fn secret_in(name: &str) -> Option<&'static str> {
    const SECRETS: [&str; 6] = ["password", "token", "secret", "apikey", "card", "cvv"];
    let words = words(name);
    let pair = words.windows(2).any(|pair| pair == ["api", "key"]).then_some("api_key");
    pair.or_else(|| SECRETS.into_iter().find(|secret| words.iter().any(|word| word == secret)))
}

/// The words of a name in any case, in lower case, without numbers at their end.
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
    fn what_sounds_like_a_secret() {
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
