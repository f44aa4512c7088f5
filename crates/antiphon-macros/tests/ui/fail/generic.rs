#[derive(antiphon::Form)]
struct Asked<T> {
    a: T,
}

#[derive(antiphon::Form)]
struct Lent<'a> {
    a: &'a str,
}

fn main() {}
