//! What can be said of every question, whatever its kind.

/// The setters of a question, which has a `raw`. `$cannot`: what a client may not be able to do; `$within`: the words for
/// how long a person may take, where one is asked.
macro_rules! setters {
    ($type:ident<'a $(, $of:ident)?>, cannot: $cannot:literal $(, within: $within:literal)?) => {
        impl<'a $(, $of)?> $type<'a $(, $of)?> {
            /// Under this key: 1 to 64 visible ASCII characters without `#` and `/`. Clients and logs see it.
            pub fn key(mut self, key: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.key = key.into();
                self
            }

            /// One of several with the same key: with a number from the program, such as a loop counter or the id of a
            /// row.
            pub fn nth(mut self, number: impl $crate::IntoNumber) -> Self {
                self.raw.number = Some(number.into_number());
                self
            }

            $(
                #[doc = $within]
                /// Later, it is [`AskError::Expired`](crate::AskError::Expired).
                pub fn within(mut self, time: ::std::time::Duration) -> Self {
                    self.raw.within = Some(time);
                    self
                }
            )?

            #[doc = concat!("Where the client cannot ", $cannot, ",")]
            /// [`AskError::Unsupported`](crate::AskError::Unsupported) in these words. Without it such a call
            /// ends as one that needs a capability.
            pub fn or_refuse(mut self, words: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.fallback = $crate::call::awaits::raw_ask::Fallback::Refuse(words.into());
                self
            }
        }
    };
}
pub(crate) use setters;
