//! Nothing generated names serde, and no name of the program's own is in the way.
#![cfg(feature = "macros")]
#![deny(missing_docs, unused_qualifications, unreachable_pub, clippy::all)]
#![forbid(unsafe_code)]

extern crate serde as other_name;

#[allow(dead_code)]
mod std {}
#[allow(dead_code)]
mod antiphon {}
#[allow(dead_code)]
struct Some;
#[allow(dead_code)]
struct None;

/// Named otherwise.
#[derive(other_name::Deserialize, ::antiphon::Form)]
#[serde(crate = "other_name")]
pub struct Place {
    /// The region.
    #[form(default = "eu")]
    pub region: String,
    /// Share of the whole.
    #[form(min = 0.5)]
    pub share: Option<f32>,
    /// Allowed sizes.
    #[form(default = ["Small"])]
    pub sizes: Vec<Size>,
}

/// A size.
#[derive(other_name::Deserialize, ::antiphon::Form)]
#[serde(crate = "other_name")]
pub enum Size {
    /// Not very.
    #[form(title = "Tiny")]
    Small,
}

#[test]
fn nothing_expanded_is_in_the_way_of_names() {
    let ask = ::antiphon::server::Ask::of::<Place>("place", "Where?");
    assert_eq!(ask.key(), "place");
}
