//! The code behind `#[tool]`, `#[prompt]`, `#[resource]` and `#[server]`: definitions made from functions.
//!
//! A marked function stays a function. Its future has the definition in its type (`functions`), so that `.tool(provision)`
//! needs only the function. The definition is made when the server is built, because the shared state is complete only
//! then.

mod arguments;
mod changed;
mod functions;
mod list;

pub use changed::{Changed, With};
pub use functions::{IntoPrompt, IntoResource, IntoTool};

use crate::{
    errors::BuildError,
    offer::{
        list::ListItem as _,
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};
use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::Arc,
};

/// The items that expanded code calls.
pub(crate) mod expanded {
    pub use super::{
        AnyResource, DefinePrompt, DefineResource, DefineTool, Offered, Service, States,
        arguments::{
            Spec, argument, completer, completions, flat, list_variable, query_variable, text, variable,
        },
        functions::{
            Outcome, PromptFuture, ResourceFuture, ToolFuture, boxed, outcome, prompt, resource, run,
            run_resolved, tagged, template, tool,
        },
        list::Additional,
    };
    pub use crate::errors::BuildError;
    pub use antiphon_wire::{Annotations, AskSupport, Role, ToolAnnotations};
    pub use serde_json::{Number, Value};

    /// Returns the importance of an item.
    pub fn priority(priority: f64) -> Option<Number> {
        Number::from_f64(priority)
    }
}

/// A resource, or a template of some.
#[derive(Debug)]
pub enum AnyResource {
    /// A resource at one URI.
    One(Resource),
    /// The resources at all URIs that match a template.
    Many(ResourceTemplate),
}

impl AnyResource {
    /// # Errors
    /// If this is a template.
    pub(crate) fn into_one(self) -> Result<Resource, BuildError> {
        match self {
            Self::One(resource) => Ok(resource),
            Self::Many(template) => {
                let template = template.key();
                Err(BuildError(format!(
                    "`{template}` has variables: add it as a template, not as a resource"
                )))
            }
        }
    }

    /// # Errors
    /// If this is a resource.
    pub(crate) fn into_template(self) -> Result<ResourceTemplate, BuildError> {
        match self {
            Self::Many(template) => Ok(template),
            Self::One(resource) => {
                let uri = resource.key();
                Err(BuildError(format!("`{uri}` has no variables: add it as a resource, not as a template")))
            }
        }
    }
}

impl From<Resource> for AnyResource {
    fn from(resource: Resource) -> Self {
        Self::One(resource)
    }
}

impl From<ResourceTemplate> for AnyResource {
    fn from(template: ResourceTemplate) -> Self {
        Self::Many(template)
    }
}

/// The definition of a tool, written by `#[tool]`.
pub trait DefineTool: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Tool, BuildError>;
}

/// The definition of a prompt, written by `#[prompt]`.
pub trait DefinePrompt: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Prompt, BuildError>;
}

/// The definition of a resource or template, written by `#[resource]`.
pub trait DefineResource: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing.
    fn define(states: &States) -> Result<AnyResource, BuildError>;
}

/// A type with `#[server]` on an `impl` block, the parameter of [`ServerBuilder::with`](crate::ServerBuilder::with). No
/// other type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools, prompts or resources",
    label = "no `#[server]` on an impl of this type",
    note = "put `#[antiphon::server]` above its `impl` block, and `#[tool]`, `#[prompt]` or `#[resource(..)]` above methods in it"
)]
pub trait Service: Send + Sync + Sized + 'static {
    /// Adds the definitions of the methods.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    #[doc(hidden)]
    fn offer(self: Arc<Self>, states: &States, offered: &mut Offered) -> Result<(), BuildError>;
}

/// A closure that adds one definition, or the several of a [`Service`](crate::Service).
pub(crate) type Offer = Box<dyn FnOnce(&States, &mut Offered) -> Result<(), BuildError> + Send + Sync>;

/// All definitions with which a server starts.
#[derive(Debug, Default)]
pub struct Offered {
    /// Tools.
    pub tools: Vec<Tool>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Templates of resources.
    pub templates: Vec<ResourceTemplate>,
}

impl Offered {
    /// Adds a resource, or a template of some.
    pub fn add(&mut self, resource: AnyResource) {
        match resource {
            AnyResource::One(resource) => self.resources.push(resource),
            AnyResource::Many(template) => self.templates.push(template),
        }
    }
}

/// A value of the server that a handler receives: a parameter `db: State<Db>`, or `State(db): State<Db>` for the
/// [`Arc`] inside. It is set once, with [`ServerBuilder::state`](crate::ServerBuilder::state). It is not an argument of
/// the tool, and no caller can set it.
///
/// It derefs to `T`. A clone shares the same value.
/// ```
/// use antiphon::{server::{Server, State}, tool};
///
/// struct Greeting {
///     words: String,
/// }
///
/// /// Greets somebody.
/// #[tool]
/// async fn greet(name: String, greeting: State<Greeting>) -> String {
///     format!("{}, {name}!", greeting.words)
/// }
///
/// let greeting = Greeting { words: "Hello".to_owned() };
/// let server = Server::builder("greeter", "1.0").state(greeting).tool(greet).build();
/// # assert!(server.is_ok());
/// ```
pub struct State<T>(
    /// The value.
    pub Arc<T>,
);

impl<T> State<T> {
    /// Wraps a value, for example to call a handler in a test.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> From<Arc<T>> for State<T> {
    fn from(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for State<T> {
    /// Omits the value, which may hold data that does not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State<{}>(..)", type_name::<T>())
    }
}

/// All state values, by type.
#[derive(Default)]
pub struct States {
    given: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    duplicate: Option<&'static str>,
}

impl States {
    pub(crate) fn give<T: Send + Sync + 'static>(&mut self, value: T) {
        if self.given.insert(TypeId::of::<T>(), Arc::new(value)).is_some() {
            self.duplicate = Some(type_name::<T>());
        }
    }

    /// # Errors If a type was given twice: the two values cannot be distinguished.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        self.duplicate.map_or(Ok(()), |name| {
            Err(BuildError(format!("the state `{name}` is given twice: wrap one in a type of its own")))
        })
    }

    /// Returns the state of this type, for `user` ("the tool `provision`").
    ///
    /// # Errors
    /// If there is none.
    pub fn get<T: Send + Sync + 'static>(&self, user: &str) -> Result<State<T>, BuildError> {
        let given = self.given.get(&TypeId::of::<T>()).cloned();
        given.and_then(|given| given.downcast().ok()).map(State).ok_or_else(|| {
            let name = type_name::<T>();
            BuildError(format!("{user} takes the state `{name}`, which was not given: use `.state(..)`"))
        })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("given", &self.given.len()).finish_non_exhaustive()
    }
}
