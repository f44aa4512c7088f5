//! The extensions of a server: their declarations, and the handlers of their methods.

use crate::{
    errors::BuildError,
    extension::{Extension, Handler},
};
use antiphon_wire::{
    ServerCapabilities, TASKS_EXTENSION,
    extension::{ExtensionId, check_method},
    method,
};
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, hash_map},
    fmt,
    sync::Arc,
};

/// The extensions that a server declares. They do not change while it runs.
pub(crate) struct Extensions {
    declared: Vec<Arc<Declared>>,
    methods: HashMap<String, Method>,
}

/// The declaration of an extension.
pub(crate) struct Declared {
    pub(crate) id: ExtensionId,
    settings: Map<String, Value>,
    pub(crate) requires_client: bool,
    pub(crate) scopes: Vec<String>,
    /// True if the revisions before 2026-07-28 have it too.
    in_sessions: bool,
}

/// A method of an extension.
pub(crate) struct Method {
    pub(crate) extension: Arc<Declared>,
    pub(crate) handler: Handler,
}

impl Extensions {
    /// Checks the extensions of a builder, and adds that of tasks if the server has tasks.
    ///
    /// # Errors
    /// Names the extension that is wrong, or the two that collide.
    pub(crate) fn new(own: Vec<Extension>, has_tasks: bool) -> Result<Self, BuildError> {
        let mut table = Self { declared: Vec::new(), methods: HashMap::new() };
        // Their id and methods are taken even where a server has no tasks.
        table.add(tasks(), false)?;
        for extension in own {
            table.add(extension, true)?;
        }
        if !has_tasks {
            table.declared.remove(0);
            table.methods.retain(|_, method| !matches!(method.handler, Handler::Tasks));
        }
        Ok(table)
    }

    fn add(&mut self, extension: Extension, in_sessions: bool) -> Result<(), BuildError> {
        let Extension { id, settings, requires_client, scopes, methods } = extension;
        let id = ExtensionId::new(&id)?;
        let error = |text: String| Err(BuildError(format!("the extension `{id}`: {text}")));
        if self.declared.iter().any(|known| known.id == id) {
            return match id.as_str() {
                TASKS_EXTENSION => error("it belongs to the tasks of this crate: remove it".to_owned()),
                _ => error("it is registered twice: remove one".to_owned()),
            };
        }
        let settings = match settings {
            Ok(settings) => settings,
            Err(fault) => return error(format!("its settings do not fit: {fault}")),
        };
        let id = id.clone();
        let declared = Arc::new(Declared { id, settings, requires_client, scopes, in_sessions });
        for (name, handler) in methods {
            if let Err(fault) = check_method(&name) {
                return error(fault.to_string());
            }
            match self.methods.entry(name) {
                hash_map::Entry::Occupied(taken) => {
                    let (name, other) = (taken.key(), &taken.get().extension.id);
                    return error(format!("the extension `{other}` has the method {name:?} too: rename one"));
                }
                hash_map::Entry::Vacant(free) => {
                    free.insert(Method { extension: Arc::clone(&declared), handler });
                }
            }
        }
        self.declared.push(declared);
        Ok(())
    }

    /// Returns true if an extension of this id is declared.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.declared.iter().any(|extension| extension.id.as_str() == id)
    }

    /// Returns the method of this name, if an extension has one.
    pub(crate) fn method(&self, name: &str) -> Option<&Method> {
        if self.methods.is_empty() { None } else { self.methods.get(name) }
    }

    /// Returns true if an extension has a notification of this name.
    pub(crate) fn has_notification(&self, name: &str) -> bool {
        self.method(name).is_some_and(|method| matches!(method.handler, Handler::Notification(_)))
    }

    /// Declares the extensions, in a session or outside of one.
    pub(crate) fn declare(&self, capabilities: ServerCapabilities, in_session: bool) -> ServerCapabilities {
        let declared = self.declared.iter().filter(|extension| extension.in_sessions || !in_session);
        declared.fold(capabilities, |capabilities, extension| {
            capabilities.with_extension_settings(extension.id.as_str(), extension.settings.clone())
        })
    }
}

/// Returns the extension for tasks. Its gate depends on the form of tasks, and is that of its handlers.
fn tasks() -> Extension {
    let mut tasks = Extension::new(TASKS_EXTENSION).requires_client(false);
    tasks.methods = method::TASKS.iter().map(|method| ((*method).to_owned(), Handler::Tasks)).collect();
    tasks
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.declared.iter().map(|extension| &extension.id)).finish()
    }
}
