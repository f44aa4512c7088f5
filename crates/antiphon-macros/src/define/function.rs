//! The model of a marked function, read from its signature and its attributes.

use crate::define::{
    argument::{Argument, Completer},
    kind::Kind,
    settings::Settings,
    shown::{call_settings, shown},
    template::Template,
};
use crate::{
    errors::{
        Errors, UniqueNames, check_ctx, is_str, last, name_behind, plain, read_output, state_of, ungrouped,
    },
    resolver::ResolvedParam,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, FnArg, GenericParam, LitStr, Pat, PatType, Receiver, ReceiverKind, Result, Signature,
    Token, Type, parse::ParseStream, spanned::Spanned as _,
};

/// The maximum number of parameters, which the traits behind `.tool(..)` support.
const MOST_PARAMS: usize = 16;

/// A marked function.
pub(super) struct Function {
    pub(super) kind: Kind,
    pub(super) ident: Ident,
    /// The name for clients.
    pub(super) name: String,
    pub(super) name_span: Span,
    pub(super) takes_self: bool,
    /// The parameters in order, without `&self`.
    pub(super) params: Vec<Param>,
    pub(super) output: Type,
    pub(super) output_span: Span,
    /// The URI, for a resource.
    pub(super) template: Option<Template>,
    /// The method calls that complete the definition.
    pub(super) setters: TokenStream,
    /// The treatment of additional arguments, with a comma; empty if callers cannot name any.
    pub(super) additional: TokenStream,
}

/// A parameter, by the source of its value.
pub(super) enum Param {
    Ctx,
    /// A value of the server: the `T` of `State<T>`.
    State(Type),
    /// An argument from the caller.
    Argument(Argument),
    /// A value from a resolver.
    Resolved(ResolvedParam),
}

/// The place of the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Free,
    /// A method of an impl with `#[server]`. `generic` is true if the type has parameters.
    Method {
        generic: bool,
    },
}

impl Function {
    /// Reads a signature, and removes the attributes of its parameters that the compiler does not know.
    pub(super) fn read(
        kind: Kind,
        place: Context,
        attribute: TokenStream,
        attrs: &[Attribute],
        sig: &mut Signature,
    ) -> Result<Self> {
        let mut errors = Errors::default();
        errors.note(check_signature(kind, sig));
        let given = errors.note(Given::read(kind, attribute, &sig.ident, attrs));
        let mut takes_self = false;
        let mut params = Vec::new();
        let mut seen = UniqueNames::new("argument");
        for input in &mut sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    takes_self = true;
                    errors.note(check_receiver(kind, place, receiver));
                }
                FnArg::Typed(typed) => {
                    let Some(param) = errors.note(Param::read(kind, typed)) else { continue };
                    match &param {
                        Param::Argument(argument) if !argument.is_flat => {
                            errors.note(seen.add(&argument.name, argument.span));
                        }
                        Param::Ctx if params.iter().any(|param| matches!(param, Param::Ctx)) => {
                            errors.note::<()>(Err(Error::new(
                                typed.span(),
                                "a function has at most one `ctx: &Ctx`: remove this one",
                            )));
                        }
                        _ => {}
                    }
                    params.push(param);
                }
            }
        }
        let output = errors.note(read_output(sig));
        // A parameter that could not be read is not a missing parameter.
        if let Some(span) = params.iter().find_map(Param::self_completer).filter(|_| !takes_self) {
            let fault = "the completer is a method, and this function takes no `&self`: name a function";
            errors.note::<()>(Err(Error::new(span, fault)));
        }
        let all_read = params.len() + usize::from(takes_self) == sig.inputs.len();
        if let Some(template) = given.as_ref().and_then(|given| given.template.as_ref()).filter(|_| all_read)
        {
            errors.note(check_variables(template, &params));
        }
        errors.done()?;
        let (Some(given), Some((output, output_span))) = (given, output) else {
            return Err(Error::new(sig.span(), "this signature cannot be read"));
        };
        Ok(Self {
            kind,
            ident: sig.ident.clone(),
            name: given.name,
            name_span: given.name_span,
            takes_self,
            params,
            output,
            output_span,
            template: given.template,
            setters: given.setters,
            additional: given.additional,
        })
    }

    /// Returns the arguments, each with its variable.
    pub(super) fn arguments(&self) -> impl DoubleEndedIterator<Item = (Ident, &Argument)> {
        self.params.iter().enumerate().filter_map(|(place, param)| match param {
            Param::Argument(argument) => Some((Self::variable(place), argument)),
            _ => None,
        })
    }

    /// Returns `true` if a completer is a method of the receiver.
    pub(super) fn has_method_completer(&self) -> bool {
        self.params.iter().any(|param| param.self_completer().is_some())
    }

    /// Returns the states, each with its variable.
    pub(super) fn states(&self) -> impl Iterator<Item = (Ident, &Type)> {
        self.params.iter().enumerate().filter_map(|(place, param)| match param {
            Param::State(ty) => Some((Self::variable(place), ty)),
            _ => None,
        })
    }

    /// Returns the parameters from resolvers, each with its index.
    pub(super) fn resolved(&self) -> impl Iterator<Item = (usize, &ResolvedParam)> {
        self.params.iter().enumerate().filter_map(|(place, param)| match param {
            Param::Resolved(taken) => Some((place, taken)),
            _ => None,
        })
    }

    /// Returns the variable that holds the value of the parameter with this index.
    pub(super) fn variable(place: usize) -> Ident {
        format_ident!("value_{place}", span = Span::mixed_site())
    }
}

fn check_signature(kind: Kind, sig: &Signature) -> Result<()> {
    let what = kind.with_article();
    let ident = &sig.ident;
    if sig.asyncness.is_none() {
        return Err(Error::new(
            sig.fn_token.span,
            format!("{what} must be asynchronous: `async fn {ident}`"),
        ));
    }
    let chosen = sig.generics.params.iter().find(|param| !matches!(param, GenericParam::Lifetime(_)));
    if let Some(param) = chosen {
        return Err(Error::new(
            param.span(),
            format!("{what} cannot have type parameters: write a concrete type"),
        ));
    }
    if sig.inputs.len() > MOST_PARAMS {
        return Err(Error::new(
            sig.inputs.span(),
            format!(
                "{what} has at most {MOST_PARAMS} parameters: combine some of them in a struct that derives \
                 `serde::Deserialize` and `schemars::JsonSchema`"
            ),
        ));
    }
    Ok(())
}

fn check_receiver(kind: Kind, place: Context, receiver: &Receiver) -> Result<()> {
    let word = kind.name();
    if place == Context::Free {
        return Err(Error::new(
            receiver.span(),
            format!(
                "a method can be {} only in an impl with `#[antiphon::server]`: add it above `impl`",
                kind.with_article()
            ),
        ));
    }
    let shared = matches!(receiver.kind, ReceiverKind::Reference(_, _, None));
    if shared {
        return Ok(());
    }
    Err(Error::new(
        receiver.span(),
        format!(
            "a `#[{word}]` must take `&self`, because calls run concurrently: use a Mutex or an atomic for values that change"
        ),
    ))
}

fn check_variables(template: &Template, params: &[Param]) -> Result<()> {
    let names: Vec<(&str, Span)> = params
        .iter()
        .filter_map(|param| match param {
            Param::Argument(argument) => Some((argument.name.as_str(), argument.span)),
            _ => None,
        })
        .collect();
    let mut errors = Errors::default();
    for variable in &template.variables {
        if !names.iter().any(|(name, _)| *name == variable.name) {
            let (name, parameter) = (&variable.name, variable.shape.parameter());
            errors.note::<()>(Err(Error::new(
                template.literal.span(),
                format!("the variable `{{{name}}}` has no parameter: add `{name}: {parameter}`"),
            )));
        }
    }
    for (name, span) in names {
        if template.variable(name).is_none() {
            errors.note::<()>(Err(Error::new(
                span,
                format!("`{name}` is not a variable of the URI: write `{{{name}}}` in the URI, or take `State<..>`"),
            )));
        }
    }
    errors.done()
}

impl Param {
    /// Returns the span of a completer that is a method of `self`.
    fn self_completer(&self) -> Option<Span> {
        match self {
            Self::Argument(argument) => argument.completer.as_ref().and_then(Completer::of_self),
            _ => None,
        }
    }

    fn read(kind: Kind, typed: &mut PatType) -> Result<Self> {
        let attrs = std::mem::take(&mut typed.attrs);
        let is_ours =
            |attr: &Attribute| ["doc", "arg", "resolve"].iter().any(|name| attr.path().is_ident(name));
        typed.attrs = attrs.iter().filter(|attr| !is_ours(attr)).cloned().collect();
        if let Some(attr) = attrs.iter().find(|attr| attr.path().is_ident("cfg")) {
            return Err(Error::new(
                attr.span(),
                "an argument cannot depend on `#[cfg]`: put `#[cfg]` on the function",
            ));
        }
        let arg = attrs.iter().find(|attr| attr.path().is_ident("arg"));
        let no_arg = |what: &str| {
            arg.map_or(Ok(()), |arg| {
                Err(Error::new(
                    arg.span(),
                    format!("`#[arg(..)]` is only for arguments, and {what} is not an argument: remove it"),
                ))
            })
        };
        if let Some(taken) = ResolvedParam::read(&attrs, &typed.ty)? {
            no_arg("the value of a resolver")?;
            return Ok(Self::Resolved(taken));
        }
        if name_behind(&typed.ty).is_some_and(|name| name == "Ctx") {
            no_arg("the context")?;
            return check_ctx(&typed.ty).map(|()| Self::Ctx);
        }
        if let Some(state) = state_of(&typed.ty)? {
            no_arg("a state")?;
            return Ok(Self::State(state));
        }
        check_argument_type(&typed.ty)?;
        match &*typed.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                Argument::read(kind, &pat.ident, &typed.ty, &attrs).map(Self::Argument)
            }
            pat => {
                Err(Error::new(pat.span(), "an argument must have a name: destructure the value in the body"))
            }
        }
    }
}

fn check_argument_type(ty: &Type) -> Result<()> {
    match ungrouped(ty) {
        Type::Reference(_) if !is_str(ty) => {
            Err(Error::new(ty.span(), "an argument must be owned: only `&str` may be borrowed"))
        }
        Type::ImplTrait(_) => {
            Err(Error::new(ty.span(), "an argument cannot be `impl ..`: its schema needs a concrete type"))
        }
        ty => match borrowed_within(ty) {
            Some(span) => Err(Error::new(
                span,
                "an argument must be owned: `&str` may be borrowed only by itself, so use `String` here",
            )),
            None => Ok(()),
        },
    }
}

/// Returns the span of the first reference in the generic arguments of a type.
fn borrowed_within(ty: &Type) -> Option<Span> {
    let segment = last(ty)?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => match ungrouped(ty) {
            Type::Reference(reference) => Some(reference.span()),
            ty => borrowed_within(ty),
        },
        _ => None,
    })
}

/// The content of the attribute.
struct Given {
    name: String,
    name_span: Span,
    template: Option<Template>,
    setters: TokenStream,
    additional: TokenStream,
}

impl Given {
    fn read(kind: Kind, attribute: TokenStream, ident: &Ident, attrs: &[Attribute]) -> Result<Self> {
        let parse = |input: ParseStream<'_>| {
            let template = if kind == Kind::Resource { Some(read_uri(input)?) } else { None };
            Ok((template, input.parse::<Settings>()?))
        };
        let (template, mut settings) = syn::parse::Parser::parse2(parse, attribute)?;
        settings.reject_unknown(kind.settings(), kind.with_article())?;
        let (name, name_span) = settings.text("name")?.unwrap_or_else(|| (plain(ident), ident.span()));
        // > Tool names **SHOULD** be between 1 and 128 characters in length (inclusive). [...] uppercase and lowercase
        // > ASCII letters (A-Z, a-z), digits (0-9), underscore (\_), hyphen (-), and dot (.)
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if kind == Kind::Tool && (name.len() > 128 || !name.bytes().all(fits)) {
            return Err(Error::new(
                name_span,
                format!(
                    "the name of a tool is 1 to 128 letters, digits, underscores, hyphens and dots, all ASCII; `{name}` is \
                     not: a text for people is `title = \"..\"`"
                ),
            ));
        }
        let mut setters = shown(kind, &mut settings, template.as_ref(), attrs)?;
        setters.extend(call_settings(&mut settings)?);
        let additional = if kind == Kind::Tool { additional(&mut settings)? } else { TokenStream::new() };
        Ok(Self { name, name_span, template, setters, additional })
    }
}

/// Reads the treatment of arguments that the function does not have.
fn additional(settings: &mut Settings) -> Result<TokenStream> {
    let Some((word, span)) = settings.text("additional")? else {
        return Ok(quote! { ::antiphon::__expanded::Additional::Refuse, });
    };
    match word.as_str() {
        "refuse" => Ok(quote! { ::antiphon::__expanded::Additional::Refuse, }),
        "ignore" => Ok(quote! { ::antiphon::__expanded::Additional::Ignore, }),
        _ => Err(Error::new(
            span,
            format!("`{word}` is not a valid value: write `additional = \"ignore\"` or `\"refuse\"`"),
        )),
    }
}

/// Reads the URI, which must be the first value.
fn read_uri(input: ParseStream<'_>) -> Result<Template> {
    let uri: LitStr = input.parse().map_err(|fault| {
        Error::new(fault.span(), "the first value must be the URI: `#[resource(\"report://{id}\")]`")
    })?;
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Template::read(uri)
}
