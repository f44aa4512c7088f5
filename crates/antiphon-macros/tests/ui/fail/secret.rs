#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    user_password: String,
    #[serde(rename = "apiKey")]
    key: String,
    Card_Number: Option<String>,
    #[form(title = "PIN")]
    cvv: u16,
}

fn main() {}
