//! MCP Apps: views that hosts show beside the results of tools. <https://modelcontextprotocol.io/extensions/apps>, version 2026-01-26.

use crate::{
    call::{
        ctx::Ctx,
        handler::{HandlerOutcome, IntoOutcome},
    },
    define::{AnyResource, IntoResource, States},
    errors::BuildError,
    extension::Extension,
    feed::ListKind,
    offer::{given::GivenOffers, offers::Lists, resource::Resource, tool::Tool},
};
use antiphon_wire::{Meta, ReadResourceResult, ResourceContents, escaped};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The id of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of a view.
///
/// > `mimeType` MUST be `text/html;profile=mcp-app` (other types reserved for future extensions)
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The member of a `_meta` that belongs to the extension.
const MEMBER: &str = "ui";

/// The settings of the extension, as a host declares them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Settings {
    /// The media types of the views that the host can show.
    #[serde(default)]
    pub mime_types: Vec<String>,
}

/// Returns whether the client of this call shows views of the type [`MIME_TYPE`]. A tool has a text for the other clients in any case.
///
/// > Tools MUST return meaningful content array even when UI is available
pub fn shown_to(ctx: &Ctx) -> bool {
    let settings = ctx.extension_settings::<Settings>(EXTENSION);
    settings
        .is_ok_and(|settings| settings.is_some_and(|all| all.mime_types.iter().any(|one| one == MIME_TYPE)))
}

/// Returns the extension, for a server whose tools with views are found at run time. A server with a tool that has a
/// [view](Tool::ui) declares it by itself.
pub fn extension() -> Extension {
    Extension::new(EXTENSION).requires_client(false)
}

/// One that may call a tool: see [`Tool::ui_visibility`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The model.
    Model,
    /// The view, by its host.
    App,
}

/// A permission of the browser that a view requests. A view must work without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The place of the person.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl Permission {
    fn member(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }
}

/// A view: an HTML document at a URI that begins with `ui://`. It is a resource of the server ([`ServerBuilder::resource`](crate::ServerBuilder::resource)),
/// or what a function marked `#[resource]` with this media type returns.
///
/// ```
/// use antiphon::{server::{Server, apps::View}, tool};
///
/// /// Shows the weather of a city.
/// #[tool(ui = "ui://weather/card.html")]
/// async fn weather(city: String) -> String {
///     format!("{city}: 21 degrees")
/// }
///
/// let card = View::new("ui://weather/card.html", "<!DOCTYPE html><title>Weather</title><p id=\"text\"></p>")
///     .connect(["https://api.weather.example"])
///     .prefers_border(true);
/// let server = Server::builder("weather", "1.0").tool(weather).resource(card).build()?;
/// # Ok::<(), antiphon::server::BuildError>(())
/// ```
///
/// A host blocks all origins that the view does not name.
#[derive(Clone, Debug)]
pub struct View {
    uri: String,
    html: String,
    csp: Map<String, Value>,
    permissions: Map<String, Value>,
    settings: Map<String, Value>,
}

impl View {
    /// Returns the view with this document, which is complete HTML 5. It may load nothing, and connect to nothing.
    pub fn new(uri: impl Into<String>, html: impl Into<String>) -> Self {
        let [csp, permissions, settings] = [Map::new(), Map::new(), Map::new()];
        Self { uri: uri.into(), html: html.into(), csp, permissions, settings }
    }

    /// Adds origins to which the view may connect, such as `https://api.example.com` and `wss://live.example.com`. Default: none.
    #[must_use]
    pub fn connect<Text: Into<String>>(self, origins: impl IntoIterator<Item = Text>) -> Self {
        self.origins("connectDomains", origins)
    }

    /// Adds origins of images, scripts, styles, fonts and media, such as `https://*.example.com`. Default: none.
    #[must_use]
    pub fn load<Text: Into<String>>(self, origins: impl IntoIterator<Item = Text>) -> Self {
        self.origins("resourceDomains", origins)
    }

    /// Adds origins of frames in the view. Default: none.
    #[must_use]
    pub fn frame<Text: Into<String>>(self, origins: impl IntoIterator<Item = Text>) -> Self {
        self.origins("frameDomains", origins)
    }

    /// Adds base URIs of the document. Default: its own origin.
    #[must_use]
    pub fn base_uri<Text: Into<String>>(self, origins: impl IntoIterator<Item = Text>) -> Self {
        self.origins("baseUriDomains", origins)
    }

    /// Requests a permission. A host may refuse it. Default: none.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permissions.insert(permission.member().to_owned(), json!({}));
        self
    }

    /// Sets whether the host draws a border and a background. Default: the host decides.
    #[must_use]
    pub fn prefers_border(mut self, on: bool) -> Self {
        self.settings.insert("prefersBorder".to_owned(), on.into());
        self
    }

    /// Sets the origin of the view, in the form that the host documents. Default: the host's.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.settings.insert("domain".to_owned(), domain.into().into());
        self
    }

    fn origins<Text: Into<String>>(mut self, member: &str, origins: impl IntoIterator<Item = Text>) -> Self {
        let list = self.csp.entry(member).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.extend(origins.into_iter().map(|origin| Value::String(origin.into())));
        }
        self
    }

    fn meta(&self) -> Option<Meta> {
        let mut settings = self.settings.clone();
        for (member, value) in [("csp", &self.csp), ("permissions", &self.permissions)] {
            if !value.is_empty() {
                settings.insert(member.to_owned(), Value::Object(value.clone()));
            }
        }
        (!settings.is_empty()).then(|| Meta::from(json!({ MEMBER: settings })))
    }
}

impl From<View> for ResourceContents {
    fn from(view: View) -> Self {
        let meta = view.meta();
        let mut contents = Self::text(view.uri, view.html).with_mime_type(MIME_TYPE);
        contents.meta = meta;
        contents
    }
}

impl From<View> for Resource {
    /// Returns the resource. Its name is the end of the URI: set another title with [`title`](Resource::title).
    fn from(view: View) -> Self {
        let (uri, meta) = (view.uri.clone(), view.meta());
        let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
        let view = std::sync::Arc::new(view);
        let read = async |view: std::sync::Arc<View>, _: &Ctx| View::clone(&view);
        let resource = Self::new(uri, name, crate::with_state(view, read)).mime_type(MIME_TYPE);
        match meta {
            Some(meta) => resource.meta(meta),
            None => resource,
        }
    }
}

impl IntoResource<Self> for View {
    fn into_resource(self, _: &States) -> Result<AnyResource, BuildError> {
        Ok(Resource::from(self).into())
    }
}

impl IntoOutcome<ReadResourceResult> for View {
    fn into_outcome(self) -> HandlerOutcome<ReadResourceResult> {
        ResourceContents::from(self).into_outcome()
    }
}

impl Tool {
    /// Sets the view that hosts show beside the results of this tool: the URI of a [`View`], or of a resource with its
    /// [media type](MIME_TYPE). A server that does not offer it does not build. It is a member of the [`_meta`](Self::meta).
    ///
    /// > Resource MUST exist on the server
    #[must_use]
    pub fn ui(self, uri: impl Into<String>) -> Self {
        self.with_ui("resourceUri", uri.into().into())
    }

    /// Sets who may call the tool. Default: the model and the view. A host refuses other calls; the server serves all of them.
    #[must_use]
    pub fn ui_visibility(self, visibility: impl IntoIterator<Item = Visibility>) -> Self {
        let word = |visibility| match visibility {
            Visibility::Model => "model",
            Visibility::App => "app",
        };
        self.with_ui("visibility", visibility.into_iter().map(word).collect())
    }

    fn with_ui(mut self, member: &str, value: Value) -> Self {
        let meta = &mut self.definition.meta.get_or_insert_default().0;
        let ui = meta.entry(MEMBER).or_insert_with(|| json!({}));
        if !ui.is_object() {
            *ui = json!({});
        }
        ui[member] = value;
        self
    }

    /// Returns the view of the tool.
    fn view(&self) -> Option<&Value> {
        self.definition.meta.as_ref()?.0.get(MEMBER)?.get("resourceUri")
    }

    /// Returns whether the tool belongs to the extension.
    pub(crate) fn has_ui(&self) -> bool {
        self.definition.meta.as_ref().is_some_and(|meta| meta.0.contains_key(MEMBER))
    }

    /// Checks that the server offers the view of this tool.
    ///
    /// # Errors
    /// Names the tool and the view.
    pub(crate) fn check_view(&self, lists: &Lists, given: Option<&GivenOffers>) -> Result<(), BuildError> {
        let Some(view) = self.view() else { return Ok(()) };
        let name = escaped(&self.definition.name);
        let uri = view.as_str().unwrap_or_default();
        let fault = |text: &str| {
            Err(BuildError(format!("the tool `{name}` has the view `{}`, {text}", escaped(uri))))
        };
        if !uri.starts_with("ui://") {
            return fault("whose URI does not begin with `ui://`");
        }
        if let Some(resource) = lists.resources.get(uri) {
            return match &resource.definition.mime_type {
                Some(mime_type) if mime_type == MIME_TYPE => Ok(()),
                _ => {
                    fault("which is a resource of another media type: it must be `text/html;profile=mcp-app`")
                }
            };
        }
        let is_given = given.is_some_and(|given| given.0.has_list(ListKind::Resources));
        if is_given || lists.templates.iter().any(|template| template.variables(uri).is_some()) {
            return Ok(());
        }
        fault("which the server does not offer: add it, as `.resource(View::new(..))`")
    }
}
