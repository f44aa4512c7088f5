//! One field of a form: the parts that all kinds share, and the code for each kind: bounds, formats and defaults.

use crate::{
    errors::plain,
    form::{
        attributes::{Attributes, FieldAttributes, Given, TypeAttributes, Value, doc_comment},
        secret::secret_in,
        shape::{Shape, Whole},
    },
};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, LitStr, Result, Type, spanned::Spanned as _};

pub(super) struct Field {
    /// The name that serde reads.
    pub(super) name: String,
    pub(super) span: Span,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    /// True if the name may suggest a secret.
    pub(super) not_secret: bool,
    pub(super) shape: Shape,
    /// The attributes of the field's kind.
    pub(super) attributes: Attributes,
}

impl Field {
    /// Reads a field. Returns `None` if serde never reads it.
    pub(super) fn read(field: &syn::Field, names: &TypeAttributes) -> Result<Option<Self>> {
        // The caller passes named fields only.
        let Some(ident) = &field.ident else { return Ok(None) };
        let own = FieldAttributes::read(&field.attrs)?;
        let mut attributes = Attributes::read(&field.attrs)?;
        if own.skipped {
            attributes.reject_unknown(&[], "a field that serde skips")?;
            return Ok(None);
        }
        let (shape, optional) = Shape::read(&field.ty)?;
        attributes.reject_unknown(shape.attributes(), shape.with_article())?;
        let name = names.field(&own, ident);
        let secret = secret_in(&plain(ident)).or_else(|| secret_in(&name));
        let not_secret = attributes.flag("not_secret")?;
        if let Some(secret) = secret.filter(|_| !not_secret) {
            return Err(Error::new(
                ident.span(),
                format!(
                    "`{secret}`: a secret must not pass through the client; ask with `ctx.elicit_url` (by hand: `Ask::url`) \
                     and let the person enter it on a page of yours. If it is no secret, say `#[form(not_secret)]`"
                ),
            ));
        }
        let description =
            attributes.text("description")?.map(|(text, _)| text).or_else(|| doc_comment(&field.attrs));
        Ok(Some(Self {
            name,
            span: ident.span(),
            title: attributes.text("title")?.map(|(text, _)| text),
            description,
            required: !(optional || own.default || names.defaults || attributes.has("default")),
            not_secret,
            shape,
            attributes,
        }))
    }

    /// Returns the expression that creates the field.
    pub(super) fn expand(&self, kind: &TokenStream) -> TokenStream {
        let Self { name, required, .. } = self;
        let some = |text: &Option<String>| match text {
            Some(text) => quote! { ::core::option::Option::Some(::std::string::String::from(#text)) },
            None => quote! { ::core::option::Option::None },
        };
        let (title, description) = (some(&self.title), some(&self.description));
        quote! { ::antiphon::__expanded::field(#name, #title, #description, #required, #kind) }
    }
}

/// The expression of a `FieldKind`, and the checks that the compiler evaluates.
pub(super) struct FieldCode {
    pub(super) tokens: TokenStream,
    pub(super) checks: Vec<TokenStream>,
}

pub(super) fn expand(field: &mut Field) -> Result<FieldCode> {
    let Field { shape, attributes, .. } = field;
    let plain = |tokens| FieldCode { tokens, checks: Vec::new() };
    match shape {
        Shape::Text => text(attributes).map(plain),
        Shape::Whole(whole) => whole_number(attributes, *whole).map(plain),
        Shape::Float { single } => float(attributes, *single).map(plain),
        Shape::Bool => boolean(attributes).map(plain),
        Shape::One(ty) => one(attributes, ty),
        Shape::Many(ty) => many(attributes, ty),
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote! { ::core::option::Option::Some(#value) },
        None => quote! { ::core::option::Option::None },
    }
}

fn string(text: &str) -> TokenStream {
    quote! { ::std::string::String::from(#text) }
}

/// Reads two bounds by their names, the lower one first.
fn counts(attributes: &mut Attributes, least: &str, most: &str) -> Result<(Option<u64>, Option<u64>)> {
    let (low, high) = (attributes.count(least)?, attributes.count(most)?);
    if let (Some((low, _)), Some((high, span))) = (low, high)
        && low > high
    {
        return Err(Error::new(span, format!("`{most}` is less than `{least}`: no value is valid")));
    }
    Ok((low.map(|(count, _)| count), high.map(|(count, _)| count)))
}

fn text(attributes: &mut Attributes) -> Result<TokenStream> {
    let (least, most) = counts(attributes, "min_length", "max_length")?;
    let format = attributes.text("format")?;
    let known = format.as_ref().map(|(name, span)| {
        let known = FORMATS.iter().find(|(known, _)| known == name);
        known.ok_or_else(|| Error::new(*span, "the format must be `email`, `uri`, `date` or `date-time`"))
    });
    let known = known.transpose()?;
    let default = attributes.text("default")?;
    if let Some((text, span)) = &default {
        let length = text.chars().count() as u64;
        if least.is_some_and(|least| length < least) || most.is_some_and(|most| length > most) {
            return Err(Error::new(*span, "the default is not within `min_length` and `max_length`"));
        }
        if let Some((format, _)) = known.filter(|(format, _)| !has_format(format, text)) {
            return Err(Error::new(*span, format!("the default does not have the format `{format}`")));
        }
    }
    let default = option(default.map(|(text, _)| string(&text)));
    let format = option(known.map(|(_, variant)| {
        let variant = Ident::new(variant, Span::call_site());
        quote! { ::antiphon::wire::forms::TextFormat::#variant }
    }));
    let least = option(least.map(|count| quote! { #count }));
    let most = option(most.map(|count| quote! { #count }));
    Ok(quote! {
        ::antiphon::wire::forms::FieldKind::Text { min_length: #least, max_length: #most, format: #format, default: #default }
    })
}

/// A number as it was written.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn as_float(self) -> f64 {
        match self {
            // The nearest float is exact enough, because it is only compared with other floats.
            Self::Whole(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    fn less(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a < b,
            (a, b) => a.as_float() < b.as_float(),
        }
    }

    /// Returns the expression of an `Option` of a JSON number.
    fn expand(number: Option<Self>) -> TokenStream {
        let Some(number) = number else { return option(None) };
        let literal = match number {
            Self::Whole(whole) => match (i64::try_from(whole), u64::try_from(whole)) {
                (Ok(whole), _) => Literal::i64_suffixed(whole),
                (_, Ok(whole)) => Literal::u64_suffixed(whole),
                _ => return Self::expand(Some(Self::Float(number.as_float()))),
            },
            Self::Float(float) => {
                let float = Literal::f64_suffixed(float);
                return quote! { ::antiphon::__expanded::float(#float) };
            }
        };
        quote! { ::core::option::Option::Some(::core::convert::From::from(#literal)) }
    }
}

/// Reads `min`, `max` and `default`. `read` converts each value.
fn number(
    attributes: &mut Attributes,
    integer: bool,
    type_bounds: (Option<i128>, Option<i128>),
    read: impl Fn(&Given) -> Result<Number>,
) -> Result<TokenStream> {
    let mut take = |key| -> Result<Option<(Number, Span)>> {
        let given = attributes.value(key)?;
        given.map(|given| read(&given).map(|number| (number, given.span))).transpose()
    };
    let (least, most, default) = (take("min")?, take("max")?, take("default")?);
    if let (Some((least, _)), Some((most, span))) = (least, most)
        && most.less(least)
    {
        return Err(Error::new(span, "`max` is less than `min`: no value is valid"));
    }
    if let Some((default, span)) = default
        && (least.is_some_and(|(least, _)| default.less(least))
            || most.is_some_and(|(most, _)| most.less(default)))
    {
        return Err(Error::new(span, "the default is not within `min` and `max`"));
    }
    let number = |given: Option<(Number, Span)>| given.map(|(number, _)| number);
    let least = Number::expand(number(least).or(type_bounds.0.map(Number::Whole)));
    let most = Number::expand(number(most).or(type_bounds.1.map(Number::Whole)));
    let default = Number::expand(number(default));
    Ok(quote! {
        ::antiphon::wire::forms::FieldKind::Number { integer: #integer, minimum: #least, maximum: #most, default: #default }
    })
}

fn whole_number(attributes: &mut Attributes, whole: Whole) -> Result<TokenStream> {
    number(attributes, true, whole.form_bounds(), |given| match given.value {
        Value::Whole(number) if (whole.least..=whole.most).contains(&number) => Ok(Number::Whole(number)),
        Value::Whole(_) => {
            Err(Error::new(given.span, format!("this number is out of the range of `{}`", whole.name)))
        }
        _ => Err(Error::new(given.span, format!("the field is `{}`: expected a whole number", whole.name))),
    })
}

fn float(attributes: &mut Attributes, single: bool) -> Result<TokenStream> {
    number(attributes, false, (None, None), |given| {
        let number = match given.value {
            Value::Whole(number) => Number::Whole(number),
            Value::Float(number) => Number::Float(number),
            _ => return Err(Error::new(given.span, "the field is a number: expected a number")),
        };
        let float = number.as_float();
        let fits = if single { (float as f32).is_finite() } else { float.is_finite() };
        if fits {
            Ok(number)
        } else {
            Err(Error::new(given.span, "this number is out of the range of the field's type"))
        }
    })
}

fn boolean(attributes: &mut Attributes) -> Result<TokenStream> {
    let default = match attributes.value("default")? {
        None => None,
        Some(Given { value: Value::Bool(yes), .. }) => Some(quote! { #yes }),
        Some(given) => {
            return Err(Error::new(
                given.span,
                "the field is a bool: write `default = true` or `default = false`",
            ));
        }
    };
    let default = option(default);
    Ok(quote! { ::antiphon::wire::forms::FieldKind::Boolean { default: #default } })
}

fn choices(ty: &Type) -> TokenStream {
    // The compiler reports a type without choices at the span of the type.
    quote_spanned! { ty.span()=> ::antiphon::__expanded::choices::<#ty>() }
}

/// Returns a check that the compiler evaluates, because only the compiler knows the choices of another type.
fn among_choices(ty: &Type, value: &str, span: Span) -> TokenStream {
    quote_spanned! { span=>
        const _: () = ::core::assert!(
            ::antiphon::__expanded::offers::<#ty>(#value),
            "the default is not one of the choices, by the names that serde reads"
        );
    }
}

fn one(attributes: &mut Attributes, ty: &Type) -> Result<FieldCode> {
    let default = match attributes.value("default")? {
        None => None,
        Some(Given { value: Value::Text(text), span }) => Some((text, span)),
        Some(given) => {
            return Err(Error::new(
                given.span,
                "the default of a choice must be the name that serde reads: `default = \"small\"`",
            ));
        }
    };
    let checks = default.iter().map(|(value, span)| among_choices(ty, value, *span)).collect();
    let (choices, default) = (choices(ty), option(default.map(|(text, _)| string(&text))));
    let tokens = quote! { ::antiphon::wire::forms::FieldKind::One { choices: #choices, default: #default } };
    Ok(FieldCode { tokens, checks })
}

fn many(attributes: &mut Attributes, ty: &Type) -> Result<FieldCode> {
    let (least, most) = counts(attributes, "min_items", "max_items")?;
    let default = match attributes.value("default")? {
        None => None,
        Some(Given { value: Value::List(values), span }) => {
            let count = values.len() as u64;
            if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
                return Err(Error::new(span, "the default is not within `min_items` and `max_items`"));
            }
            if let Some(second) = first_duplicate(&values) {
                return Err(Error::new(second.span(), "the default contains this choice twice"));
            }
            Some(values)
        }
        Some(given) => {
            return Err(Error::new(
                given.span,
                "the default of a list must be a list: `default = [\"small\"]`",
            ));
        }
    };
    let checks =
        default.iter().flatten().map(|value| among_choices(ty, &value.value(), value.span())).collect();
    let default = option(default.map(|values| {
        let values = values.iter().map(|value| string(&value.value()));
        quote! { ::std::vec![#(#values),*] }
    }));
    let choices = choices(ty);
    let least = option(least.map(|count| quote! { #count }));
    let most = option(most.map(|count| quote! { #count }));
    let tokens = quote! {
        ::antiphon::wire::forms::FieldKind::Many { choices: #choices, min_items: #least, max_items: #most, default: #default }
    };
    Ok(FieldCode { tokens, checks })
}

fn first_duplicate(values: &[LitStr]) -> Option<&LitStr> {
    let seen = |n: usize, value: &LitStr| values[..n].iter().any(|seen| seen.value() == value.value());
    values.iter().enumerate().find(|(n, value)| seen(*n, value)).map(|(_, value)| value)
}

// A simple check that a default has its format. The check finds obvious mistakes, and proves nothing.

/// The names of the formats, and the variants of `TextFormat`.
const FORMATS: [(&str, &str); 4] =
    [("email", "Email"), ("uri", "Uri"), ("date", "Date"), ("date-time", "DateTime")];

fn has_format(format: &str, text: &str) -> bool {
    let two_parts =
        |mark| text.split_once(mark).is_some_and(|(a, b): (&str, &str)| !a.is_empty() && !b.is_empty());
    match format {
        "email" => two_parts('@') && !text.contains(char::is_whitespace),
        "uri" => two_parts(':') && !text.contains(char::is_whitespace),
        "date" => is_date(text),
        _ => text.get(..10).is_some_and(is_date) && text.len() >= "2026-07-28T12:00:00Z".len(),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().all(|part| part.chars().all(|digit| digit.is_ascii_digit()))
        && parts.iter().map(|part| part.len()).eq([4, 2, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obvious_mistakes_are_found() {
        for (format, good, bad) in [
            ("email", "a@b.example", "a.example"),
            ("uri", "https://a.example/", "a.example"),
            ("date", "2026-07-28", "28.07.2026"),
            ("date-time", "2026-07-28T12:00:00Z", "2026-07-28"),
        ] {
            assert!(has_format(format, good), "{good}");
            assert!(!has_format(format, bad), "{bad}");
        }
    }
}
