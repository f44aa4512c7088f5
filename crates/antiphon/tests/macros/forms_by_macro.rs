//! Types that macros put together; a type without `Deserialize`; a form inside a function.

#![cfg(feature = "macros")]

use antiphon::Form as _;

macro_rules! form {
    ($name:ident { $($field:ident: $type:ty = $least:literal),* }) => {
        #[derive(antiphon::Form)]
        #[allow(dead_code)]
        struct $name {
            $(#[form(min = $least)] $field: $type,)*
        }
    };
}

form!(Numbers { a: u8 = 1, b: Option<i64> = 2 });

#[test]
fn types_from_macros_and_in_functions_are_forms() {
    #[derive(antiphon::Form)]
    #[allow(dead_code, unused_qualifications, reason = "the derive sees whole paths")]
    struct Inside {
        #[form(not_secret)]
        token: core::option::Option<std::string::String>,
    }
    assert_eq!(Numbers::schema().fields().len(), 2);
    assert_eq!(Inside::schema().fields()[0].name, "token");
}
