//! The fields of a head, found in one walk: a look into the map for each of them costs more than all of this.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The values of one field.
#[derive(Clone, Copy, Default)]
pub(crate) struct Field<'h> {
    first: Option<&'h HeaderValue>,
    is_repeated: bool,
}

/// Finds these fields.
pub(crate) fn find<'h, const N: usize>(headers: &'h HeaderMap, names: [&HeaderName; N]) -> [Field<'h>; N] {
    let mut fields = [Field::default(); N];
    for (name, value) in headers {
        if let Some(field) = names.iter().position(|wanted| *wanted == name).and_then(|at| fields.get_mut(at))
        {
            field.is_repeated = field.first.is_some();
            field.first.get_or_insert(value);
        }
    }
    fields
}

impl<'h> Field<'h> {
    /// Returns the first value.
    pub(crate) fn first(self) -> Option<&'h HeaderValue> {
        self.first
    }

    /// Returns the only value; `Err` if there are several.
    pub(crate) fn single(self) -> Result<Option<&'h HeaderValue>, Repeated> {
        if self.is_repeated { Err(Repeated) } else { Ok(self.first) }
    }

    /// Returns whether all values have this property. `name` is that of the field.
    pub(crate) fn all(
        self,
        headers: &'h HeaderMap,
        name: &HeaderName,
        has_it: impl Fn(&'h HeaderValue) -> bool,
    ) -> bool {
        if self.is_repeated {
            headers.get_all(name).iter().all(has_it)
        } else {
            self.first.is_none_or(has_it)
        }
    }
}

/// A field that has more than one value.
#[derive(Debug, PartialEq)]
pub(crate) struct Repeated;

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{ACCEPT, HOST, ORIGIN};

    #[test]
    fn fields_are_found_with_their_values() {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, "a"), (ACCEPT, "b"), (ACCEPT, "c"), (ACCEPT, "d")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let [accept, origin, host] = find(&headers, [&ACCEPT, &ORIGIN, &HOST]);
        assert_eq!(host.single(), Ok(Some(&HeaderValue::from_static("a"))));
        assert_eq!((origin.single(), origin.first()), (Ok(None), None));
        assert_eq!((accept.single(), accept.first()), (Err(Repeated), headers.get(ACCEPT)));
        for (field, name, last, all) in [
            (accept, ACCEPT, "d", true),
            (accept, ACCEPT, "c", false),
            (host, HOST, "a", true),
            (origin, ORIGIN, "", true),
        ] {
            assert_eq!(
                field.all(&headers, &name, |value| value.as_bytes() <= last.as_bytes()),
                all,
                "{name} {last}"
            );
        }
    }
}
