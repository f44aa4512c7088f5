//! The setters that all questions share.

/// Writes the setters of a question, which has a field `raw`. `$cannot`: the missing ability of a client; `$within`:
/// the documentation of the time limit, for questions to a person.
macro_rules! setters {
    ($type:ident<'a $(, $of:ident)?>, cannot: $cannot:literal $(, within: $within:literal)?) => {
        impl<'a $(, $of)?> $type<'a $(, $of)?> {
            /// Sets the key: 1 to 64 visible ASCII characters without `#` and `/`. Clients and logs show it.
            pub fn key(mut self, key: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.key = key.into();
                self
            }

            /// Numbers one of several questions with the same key. The number comes from the program, such as a loop
            /// counter or the id of a row.
            pub fn nth(mut self, number: impl $crate::IntoNumber) -> Self {
                self.raw.number = Some(number.into_number());
                self
            }

            $(
                #[doc = $within]
                /// The result after that time is [`AskError::Expired`](crate::AskError::Expired).
                pub fn timeout(mut self, time: ::std::time::Duration) -> Self {
                    self.raw.within = Some(time);
                    self
                }
            )?

            #[doc = concat!("Sets the error for a client that cannot ", $cannot, ":")]
            /// the result is [`AskError::Unsupported`](crate::AskError::Unsupported) with this text. Default: the call
            /// ends with the error for a missing capability.
            pub fn or_refuse(mut self, words: impl Into<::std::borrow::Cow<'a, str>>) -> Self {
                self.raw.fallback = $crate::call::awaits::raw_ask::Fallback::Refuse(words.into());
                self
            }
        }
    };
}
pub(crate) use setters;
