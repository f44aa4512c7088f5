//! One field of a form: the parts that all kinds share.

use super::{
    attributes::{Attributes, doc_comment},
    secret::secret_in,
    serde_names::{FieldAttributes, TypeAttributes},
    shape::Shape,
};
use crate::errors::plain;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Result};

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
