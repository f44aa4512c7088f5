#[derive(serde::Deserialize, antiphon::Form)]
struct Inner {
    a: String,
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[serde(flatten)]
    inner: Inner,
    #[serde(deserialize_with = "read")]
    b: String,
}

fn read<'de, D: serde::Deserializer<'de>>(_: D) -> Result<String, D::Error> {
    Ok(String::new())
}

#[derive(serde::Deserialize, antiphon::Form)]
#[serde(tag = "kind")]
enum Tagged {
    A,
}

#[derive(serde::Deserialize, antiphon::Form)]
#[serde(from = "String")]
struct From {
    a: String,
}

impl std::convert::From<String> for From {
    fn from(a: String) -> Self {
        Self { a }
    }
}

#[derive(serde::Deserialize, antiphon::Form)]
enum Open {
    A,
    #[serde(other)]
    Rest,
}

fn main() {}
