//! One argument: its name, its schema keywords and its default.

use super::{kind::Kind, settings::Settings};
use crate::{
    errors::{is_str, last, only_argument, plain, ungrouped},
    form::attributes::{Given, Value, doc_comment},
};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, Expr, Ident, Member, Result, Type, spanned::Spanned as _};

/// A parameter whose value comes from the caller.
pub(super) struct Argument {
    /// The name that callers write.
    pub(super) name: String,
    /// The name of the parameter in the function, which resolvers use too.
    pub(super) parameter: String,
    pub(super) span: Span,
    ty: Type,
    /// The method calls that complete its `Spec`.
    spec_calls: Vec<TokenStream>,
    /// True if the fields of its type are arguments.
    pub(super) is_flat: bool,
    pub(super) completer: Option<Completer>,
}

/// The function that suggests values of an argument.
pub(super) enum Completer {
    /// A path, as `languages` or `Self::languages`.
    Function(Expr),
    /// A method of the receiver, as `self.languages`.
    Method(Ident),
}

impl Completer {
    fn read(value: Expr) -> Result<Self> {
        let fault =
            |span| Error::new(span, "`complete` is a function, without parentheses: `complete = languages`");
        match value {
            Expr::Path(_) | Expr::Closure(_) => Ok(Self::Function(value)),
            Expr::Field(field) => match (&*field.base, field.member) {
                (Expr::Path(base), Member::Named(method)) if base.path.is_ident("self") => {
                    Ok(Self::Method(method))
                }
                (base, _) => Err(fault(base.span())),
            },
            other => Err(fault(other.span())),
        }
    }

    /// Returns the span of a method of the receiver.
    pub(super) fn of_self(&self) -> Option<Span> {
        match self {
            Self::Function(_) => None,
            Self::Method(method) => Some(method.span()),
        }
    }
}

impl Argument {
    pub(super) fn read(kind: Kind, ident: &Ident, ty: &Type, attrs: &[Attribute]) -> Result<Self> {
        let mut settings = Settings::default();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("arg")) {
            attr.parse_args_with(|input: syn::parse::ParseStream<'_>| settings.add(input))?;
        }
        let shape = Shape::of(ty);
        if settings.has("flatten") {
            return Self::flat(kind, ident, ty, &mut settings);
        }
        if kind == Kind::Tool && settings.has("complete") {
            let fault =
                "only arguments of prompts and variables of templates are completed: remove `complete`";
            return Err(Error::new(ident.span(), fault));
        }
        let (known, place) = known(kind, shape);
        settings.reject_unknown(known, place)?;
        let completer = settings.expression("complete", "languages")?.map(Completer::read).transpose()?;
        let name = match settings.text("name")? {
            Some((name, _)) => name,
            None => plain(ident),
        };
        let mut spec_calls = Vec::new();
        if let Some((title, _)) = settings.text("title")? {
            spec_calls.push(quote! { .title(#title) });
        }
        let description = settings.text("description")?.map(|(text, _)| text);
        if let Some(description) = description.or_else(|| doc_comment(attrs)) {
            spec_calls.push(quote! { .description(#description) });
        }
        bounds(shape, &mut settings, &mut spec_calls)?;
        if let Some((header, span)) = settings.text("header")? {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if !header.bytes().all(fits) {
                return Err(Error::new(
                    span,
                    format!(
                        "`{header}` is not a valid header name: use letters, digits and hyphens, as in `header = \"Region\"`"
                    ),
                ));
            }
            spec_calls.push(quote! { .keyword("x-mcp-header", #header) });
        }
        let (parameter, span, ty) = (plain(ident), ident.span(), ty.clone());
        Ok(Self { name, parameter, span, ty, spec_calls, is_flat: false, completer })
    }

    /// Reads an argument whose fields are arguments.
    fn flat(kind: Kind, ident: &Ident, ty: &Type, settings: &mut Settings) -> Result<Self> {
        settings.reject_unknown(&["flatten"], "an argument with `flatten`")?;
        let span = ident.span();
        if kind != Kind::Tool {
            let fault = format!("only a tool has arguments to flatten, and this is {}", kind.with_article());
            return Err(Error::new(span, fault));
        }
        if settings.flag("flatten")? == Some(false) {
            return Err(Error::new(span, "an argument is not flattened by itself: remove `flatten = false`"));
        }
        if Shape::of(ty) != Shape::Unknown || last(ty).is_some_and(|segment| segment.ident == "Option") {
            let fault = "`flatten` is for a struct with named fields; its own fields may be optional";
            return Err(Error::new(ty.span(), fault));
        }
        let name = plain(ident);
        let (parameter, spec_calls) = (name.clone(), Vec::new());
        Ok(Self { name, parameter, span, ty: ty.clone(), spec_calls, is_flat: true, completer: None })
    }

    /// Returns the expression of the argument's slot, which this runtime function makes.
    pub(super) fn slot(&self, slot: Ident) -> TokenStream {
        let Self { name, ty, spec_calls, .. } = self;
        let ty = if is_str(ty) {
            quote! { ::std::string::String }
        } else {
            quote! { #ty }
        };
        // The compiler reports a missing trait at the span of the type.
        let span = Span::mixed_site().located_at(self.ty.span());
        if self.is_flat {
            return quote_spanned! { span => ::antiphon::__expanded::flat::<#ty>(#name) };
        }
        let slot = quote_spanned! { span => ::antiphon::__expanded::#slot::<#ty> };
        quote! { #slot(::antiphon::__expanded::Spec::new(#name) #(#spec_calls)*) }
    }

    /// Returns the method call that adds its completer to the definition. `states` is in scope, and `this` is the receiver.
    pub(super) fn completion(&self, user: &str, this: &Ident) -> Option<TokenStream> {
        let (name, own) = (&self.name, Span::mixed_site());
        Some(match self.completer.as_ref()? {
            Completer::Function(function) => {
                let made = quote_spanned! { function.span() => ::antiphon::__expanded::completer };
                quote_spanned! { own => .complete(#name, #made(#function, states, #user)?) }
            }
            Completer::Method(method) => quote_spanned! { own => .complete(#name, {
                let service = ::core::clone::Clone::clone(&#this);
                move |typed| {
                    let service = ::core::clone::Clone::clone(&service);
                    async move { ::antiphon::__expanded::completions(service.#method(typed).await) }
                }
            }) },
        })
    }

    /// Returns the argument of the function call, from the variable that holds the value.
    pub(super) fn call_argument(&self, variable: &Ident) -> TokenStream {
        if is_str(&self.ty) {
            quote! { &#variable }
        } else {
            quote! { #variable }
        }
    }
}

/// Returns the attributes that an argument may have, and its kind with an article.
fn known(kind: Kind, shape: Shape) -> (&'static [&'static str], &'static str) {
    match (kind, shape) {
        (Kind::Prompt, _) => {
            (&["name", "title", "description", "default", "complete"], "an argument of a prompt")
        }
        (Kind::Resource, _) => (&["complete"], "a variable of a resource"),
        (Kind::Tool, shape) => {
            let known: &[&str] = match shape {
                Shape::Text => {
                    &["name", "title", "description", "default", "min_length", "max_length", "header"]
                }
                Shape::Whole { .. } => &["name", "title", "description", "default", "min", "max", "header"],
                Shape::Float => &["name", "title", "description", "default", "min", "max"],
                Shape::Bool => &["name", "title", "description", "default", "header"],
                Shape::List => &["name", "title", "description", "default", "min_items", "max_items"],
                Shape::Unknown => &[
                    "name",
                    "title",
                    "description",
                    "default",
                    "min",
                    "max",
                    "min_length",
                    "max_length",
                    "min_items",
                    "max_items",
                    "header",
                    "flatten",
                ],
            };
            (known, shape.with_article())
        }
    }
}

/// Reads the bounds and the default, and checks that the default is within the bounds.
fn bounds(shape: Shape, settings: &mut Settings, spec_calls: &mut Vec<TokenStream>) -> Result<()> {
    let mut numbers = Vec::new();
    for (key, keyword) in [("min", "minimum"), ("max", "maximum")] {
        let Some(given) = settings.value(key)? else {
            numbers.push(None);
            continue;
        };
        let value = number(shape, key, &given)?;
        spec_calls.push(quote! { .keyword(#keyword, #value) });
        numbers.push(Some(given));
    }
    let [min, max] = numbers.as_slice() else { return Ok(()) };
    if let (Some(min), Some(max)) = (min, max)
        && less(&max.value, &min.value)
    {
        return Err(Error::new(max.span, "`max` is less than `min`: no value is valid"));
    }
    let sizes = [
        Sizes::read(settings, ("min_length", "minLength"), ("max_length", "maxLength"), spec_calls)?,
        Sizes::read(settings, ("min_items", "minItems"), ("max_items", "maxItems"), spec_calls)?,
    ];
    let Some(given) = settings.value("default")? else { return Ok(()) };
    let value = default_value(shape, &given)?;
    let below = min.as_ref().is_some_and(|min| less(&given.value, &min.value));
    let above = max.as_ref().is_some_and(|max| less(&max.value, &given.value));
    let size = match &given.value {
        Value::Text(text) => u64::try_from(text.chars().count()).ok(),
        Value::List(items) => u64::try_from(items.len()).ok(),
        _ => None,
    };
    let fits = size.is_none_or(|size| sizes.iter().all(|sizes| sizes.hold(size)));
    if below || above || !fits {
        return Err(Error::new(given.span, "the default is not within the bounds of the argument"));
    }
    spec_calls.push(quote! { .default_value(#value) });
    Ok(())
}

/// The minimum and maximum number of characters or items.
struct Sizes {
    least: Option<u64>,
    most: Option<u64>,
}

impl Sizes {
    /// Reads both bounds. Each has the name of its attribute and the keyword of its schema.
    fn read(
        settings: &mut Settings,
        least: (&str, &str),
        most: (&str, &str),
        spec_calls: &mut Vec<TokenStream>,
    ) -> Result<Self> {
        let (low, high) = (settings.count(least.0)?, settings.count(most.0)?);
        for (count, keyword) in [(low, least.1), (high, most.1)] {
            if let Some((count, _)) = count {
                spec_calls.push(quote! { .keyword(#keyword, #count) });
            }
        }
        match (low, high) {
            (Some((low, _)), Some((high, span))) if high < low => {
                let fault = format!("`{}` is less than `{}`: no value is valid", most.0, least.0);
                Err(Error::new(span, fault))
            }
            _ => Ok(Self { least: low.map(|(low, _)| low), most: high.map(|(high, _)| high) }),
        }
    }

    fn hold(&self, size: u64) -> bool {
        self.least.is_none_or(|least| size >= least) && self.most.is_none_or(|most| size <= most)
    }
}

/// Returns a bound as an expression.
fn number(shape: Shape, key: &str, given: &Given) -> Result<TokenStream> {
    match (&given.value, shape) {
        (Value::Whole(whole), Shape::Whole { least, most }) if !(least..=most).contains(whole) => {
            Err(Error::new(given.span, format!("`{key}` is out of the range of the type")))
        }
        (Value::Whole(whole), _) => whole_number(*whole, given.span),
        (Value::Float(_), Shape::Whole { .. }) => Err(Error::new(
            given.span,
            format!("`{key}` of a whole number must be a whole number: `{key} = 1`"),
        )),
        (Value::Float(float), _) if float.is_finite() => Ok(quote! { #float }),
        _ => Err(Error::new(given.span, format!("`{key}` must be a number: `{key} = 1`"))),
    }
}

fn whole_number(whole: i128, span: Span) -> Result<TokenStream> {
    match (i64::try_from(whole), u64::try_from(whole)) {
        (Ok(whole), _) => Ok(quote! { #whole }),
        (_, Ok(whole)) => Ok(quote! { #whole }),
        _ => Err(Error::new(span, "no number in JSON is as large")),
    }
}

/// Returns a default as an expression.
fn default_value(shape: Shape, given: &Given) -> Result<TokenStream> {
    let refuse = |example: &str| {
        let of = shape.with_article();
        Err(Error::new(given.span, format!("the default of {of} must be {of}: `default = {example}`")))
    };
    match (&given.value, shape) {
        (Value::Whole(whole), Shape::Whole { least, most }) if !(least..=most).contains(whole) => {
            Err(Error::new(given.span, "the default is out of the range of the type"))
        }
        (Value::Text(text), Shape::Text | Shape::Unknown) => Ok(quote! { #text }),
        (Value::Whole(whole), Shape::Whole { .. } | Shape::Float | Shape::Unknown) => {
            whole_number(*whole, given.span)
        }
        (Value::Float(float), Shape::Float | Shape::Unknown) if float.is_finite() => Ok(quote! { #float }),
        (Value::Bool(yes), Shape::Bool | Shape::Unknown) => Ok(quote! { #yes }),
        (Value::List(items), Shape::List | Shape::Unknown) => {
            // The list has an explicit type, because it may be empty.
            Ok(quote! { ::std::vec::Vec::<&'static str>::from([#(#items),*]) })
        }
        (_, Shape::Text) => refuse("\"..\""),
        (_, Shape::Whole { .. }) => refuse("1"),
        (_, Shape::Float) => refuse("0.5"),
        (_, Shape::Bool) => refuse("true"),
        (_, Shape::List) => refuse("[\"..\"]"),
        (_, Shape::Unknown) => Err(Error::new(given.span, "no number in JSON is as large")),
    }
}

/// Returns `true` if both values are numbers and the first is less than the second.
fn less(one: &Value, other: &Value) -> bool {
    // Whole numbers beyond 2^53 are compared exactly only with each other.
    #[allow(clippy::cast_precision_loss, reason = "see above")]
    let float = |value: &Value| match value {
        Value::Whole(whole) => Some(*whole as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    };
    match (one, other) {
        (Value::Whole(one), Value::Whole(other)) => one < other,
        (one, other) => matches!((float(one), float(other)), (Some(one), Some(other)) if one < other),
    }
}

// The shape of an argument's type, as far as its name shows it. The macro rejects attributes that do not fit the
// shape. A type with an unknown name may have every attribute, and the server checks the attributes against its schema
// when the server is built.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Whole { least: i128, most: i128 },
    Float,
    Bool,
    List,
    Unknown,
}

impl Shape {
    /// Returns the shape of a type, or of the type in its `Option`.
    pub(super) fn of(ty: &Type) -> Self {
        if is_str(ty) {
            return Self::Text;
        }
        let Some(segment) = last(ty) else {
            return if matches!(ungrouped(ty), Type::Array(_)) { Self::List } else { Self::Unknown };
        };
        if let Some(inner) = only_argument(segment, "Option") {
            return Self::of(inner);
        }
        macro_rules! whole {
            ($($name:ident)*) => {
                match segment.ident.to_string().as_str() {
                    $(stringify!($name) => Self::Whole { least: $name::MIN as i128, most: $name::MAX as i128 },)*
                    // The size depends on the server's machine, which clients do not know.
                    "usize" => Self::Whole { least: 0, most: u64::MAX as i128 },
                    "isize" => Self::Whole { least: i64::MIN as i128, most: i64::MAX as i128 },
                    "String" => Self::Text,
                    "f32" | "f64" => Self::Float,
                    "bool" => Self::Bool,
                    "Vec" | "HashSet" | "BTreeSet" | "VecDeque" => Self::List,
                    _ => Self::Unknown,
                }
            };
        }
        whole!(u8 u16 u32 u64 i8 i16 i32 i64)
    }

    /// Returns the name with an article, for messages.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Whole { .. } => "a whole number",
            Self::Float => "a number",
            Self::Bool => "a boolean",
            Self::List => "a list",
            Self::Unknown => "an argument",
        }
    }
}
