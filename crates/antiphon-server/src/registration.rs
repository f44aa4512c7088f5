//! Changes while the server runs.

use crate::{
    BuildError, IntoPrompt, IntoResource, IntoTool, Prompt, Resource, ResourceTemplate, Server,
    define::expanded::AnyResource,
    offer::{
        list::{Entry, List},
        profile::Profile,
        registry::{ListAccess, RegisteredTool, Registry},
    },
};
use arc_swap::Guard;
use std::sync::Arc;

/// What is offered may change, if [`list_changed`](super::ServerBuilder::list_changed) was declared: at the end of its
/// list something is added, from anywhere something is removed. Requests that run already keep what they began with;
/// later ones, and all other clones of the server, see the change. Clients that listen are told.
///
/// Every instance must change alike: a list is continued, and a call that asked is finished, by any of them.
impl Server {
    /// Offers a tool from now on.
    ///
    /// # Errors
    /// What [`build`](super::ServerBuilder::build) would say of it; also if lists may not change here.
    pub fn add_tool<Shape>(&self, tool: impl IntoTool<Shape>) -> Result<(), BuildError> {
        self.add(RegisteredTool::new(tool.into_tool(&self.0.states)?)?)
    }

    /// Offers the tool of this name no more. Whether there was one; `false` also if lists may not change here.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove::<RegisteredTool>(name)
    }

    /// Offers a prompt from now on.
    ///
    /// # Errors
    /// What [`build`](super::ServerBuilder::build) would say of it; also if lists may not change here.
    pub fn add_prompt<Shape>(&self, prompt: impl IntoPrompt<Shape>) -> Result<(), BuildError> {
        self.add(prompt.into_prompt(&self.0.states)?)
    }

    /// Offers the prompt of this name no more. Whether there was one; `false` also if lists may not change here.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove::<Prompt>(name)
    }

    /// Offers a resource from now on.
    ///
    /// # Errors
    /// What [`build`](super::ServerBuilder::build) would say of it; also if lists may not change here.
    pub fn add_resource<Shape>(&self, resource: impl IntoResource<Shape>) -> Result<(), BuildError> {
        match resource.into_resource(&self.0.states)? {
            AnyResource::One(resource) => self.add(resource),
            AnyResource::Many(template) => self.add(template),
        }
    }

    /// Offers the resource at this URI no more. Whether there was one; `false` also if lists may not change here.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove::<Resource>(uri)
    }

    /// Offers the resources of a template from now on.
    ///
    /// # Errors
    /// What [`build`](super::ServerBuilder::build) would say of it; also if lists may not change here.
    pub fn add_template<Shape>(&self, template: impl IntoResource<Shape>) -> Result<(), BuildError> {
        self.add_resource(template)
    }

    /// Offers the template of this URI template no more. Whether there was one; `false` also if lists may not change
    /// here.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.remove::<ResourceTemplate>(uri_template)
    }

    /// Tells every subscription to this resource, on any connection of this process, that it changed. Other instances
    /// do not hear of it: where several share the work, tell each.
    ///
    /// Nobody is told unless the server was built with
    /// [`resource_updates`](super::ServerBuilder::resource_updates).
    pub fn resource_updated(&self, uri: &str) {
        self.0.runtime.subscriptions.resource_updated(uri);
    }

    fn add<T: ListAccess>(&self, thing: T) -> Result<(), BuildError> {
        let entry = Entry::new(thing)?;
        self.change(|list, profile| list.with(entry.clone(), profile).map(Some)).map(|_changed| ())
    }

    fn remove<T: ListAccess>(&self, key: &str) -> bool {
        self.change::<T>(|list, profile| list.without(key, profile)).unwrap_or_else(|error| {
            tracing::error!(%error, key, "nothing was removed");
            false
        })
    }

    /// Puts another registry in the place of this one. `make` gives the changed list, or `None` where there is nothing
    /// to change; it is called again if another change came first, so that none is lost.
    fn change<T: ListAccess>(
        &self,
        make: impl Fn(&List<T>, &Profile) -> Result<Option<List<T>>, BuildError>,
    ) -> Result<bool, BuildError> {
        let mut current = self.0.registry.load_full();
        if !current.profile.list_changed {
            return Err(BuildError(
                "lists change only on a server that declared it: use `.list_changed()` on its builder"
                    .to_owned(),
            ));
        }
        loop {
            let Some(list) = make(T::of(&current.lists), &current.profile)? else { return Ok(false) };
            let mut lists = current.lists.clone();
            *T::of_mut(&mut lists) = Arc::new(list);
            let changed = Arc::new(Registry::new(lists, Arc::clone(&current.profile))?);
            let found = Guard::into_inner(self.0.registry.compare_and_swap(&current, changed));
            if Arc::ptr_eq(&found, &current) {
                break;
            }
            current = found;
        }
        // After the change is there to be seen: who hears of it and asks, finds it.
        self.0.runtime.subscriptions.list_changed(T::KIND);
        Ok(true)
    }
}
