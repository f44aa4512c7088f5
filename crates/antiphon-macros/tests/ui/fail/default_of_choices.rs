#[derive(serde::Deserialize, antiphon::Form)]
enum Size {
    Small,
    Large,
}

#[derive(serde::Deserialize, antiphon::Form)]
struct Asked {
    #[form(default = 1)]
    a: Size,
    #[form(default = "Small")]
    b: Vec<Size>,
    #[form(default = ["Small", "Small"])]
    c: Vec<Size>,
    #[form(max_items = 1, default = ["Small", "Large"])]
    d: Vec<Size>,
    #[form(default = [1])]
    e: Vec<Size>,
}

fn main() {}
