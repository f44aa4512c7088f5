//! Registration: changes of the offers while the server runs, here and in other instances, and offers of another service, with a prefix
//! before their names.

use crate::{
    apps,
    define::{IntoPrompt, IntoResource, IntoTool, Service},
    errors::BuildError,
    feed::{Change, ListKind},
    identity::account::CallerInfo,
    offer::{
        Profile,
        list::{Entry, List},
        offers::{ListAccess, Offers, RegisteredTool},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
    },
    options::TaskMode,
    server::{OwnServer, Server, builder::ServerBuilder},
};
use antiphon_wire::escaped;
use arc_swap::Guard;
use std::sync::{Arc, Weak};

/// The offers may change, if [`list_changed`](crate::ServerBuilder::list_changed) was declared: an addition goes to the
/// end of its list, and any item may be removed. Requests that already run keep the offers with which they began. Later
/// requests, and all other clones of the server, see the change. Subscribed clients are notified.
///
/// Make the same changes on every instance: any of them may continue a list, or finish a call that asked.
impl Server {
    /// Adds a tool.
    ///
    /// # Errors
    /// The errors of [`build`](crate::ServerBuilder::build) for this item; also if the server did not declare list
    /// changes.
    pub fn add_tool<Shape>(&self, tool: impl IntoTool<Shape>) -> Result<(), BuildError> {
        let tool = tool.into_tool(&self.0.states)?;
        if tool.settings.task != TaskMode::Never && self.0.runtime.tasks.is_none() {
            return Err(BuildError(
                "the server was built without tasks: give it one tool with tasks, a `.task_store(..)` or a `.task_engine(..)`, before it is built"
                    .to_owned(),
            ));
        }
        let offers = self.current_offers();
        if tool.has_ui() && !offers.profile.extensions.has(apps::EXTENSION) {
            return Err(BuildError(format!(
                "the tool `{}` has a view, and the server was built without MCP Apps: add `.extension(apps::extension())` before it is built",
                escaped(&tool.definition.name)
            )));
        }
        tool.check_view(&offers.lists, offers.given.as_ref())?;
        let tool = RegisteredTool::new(tool)?;
        tool.warn_without_description();
        self.add(tool)
    }

    /// Removes the tool of this name. Returns true if there was one; false also if the server did not declare list
    /// changes.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove::<RegisteredTool>(name)
    }

    /// Adds a prompt.
    ///
    /// # Errors
    /// The errors of [`build`](crate::ServerBuilder::build) for this item; also if the server did not declare list
    /// changes.
    pub fn add_prompt<Shape>(&self, prompt: impl IntoPrompt<Shape>) -> Result<(), BuildError> {
        self.add(prompt.into_prompt(&self.0.states)?)
    }

    /// Removes the prompt of this name. Returns true if there was one; false also if the server did not declare list
    /// changes.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove::<Prompt>(name)
    }

    /// Adds a resource.
    ///
    /// # Errors
    /// The errors of [`build`](crate::ServerBuilder::build) for this item; also if the server did not declare list
    /// changes.
    pub fn add_resource<Shape>(&self, resource: impl IntoResource<Shape>) -> Result<(), BuildError> {
        self.add(resource.into_resource(&self.0.states)?.into_one()?)
    }

    /// Removes the resource at this URI. Returns true if there was one; false also if the server did not declare list
    /// changes.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove::<Resource>(uri)
    }

    /// Adds a template of resources.
    ///
    /// # Errors
    /// The errors of [`build`](crate::ServerBuilder::build) for this item; also if the server did not declare list
    /// changes.
    pub fn add_template<Shape>(&self, template: impl IntoResource<Shape>) -> Result<(), BuildError> {
        self.add(template.into_resource(&self.0.states)?.into_template()?)
    }

    /// Removes the template with this URI template. Returns true if there was one; false also if the server did not
    /// declare list changes.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.remove::<ResourceTemplate>(uri_template)
    }

    /// Notifies every subscription to this resource that the resource changed: on any connection of this process, and on other instances by the
    /// [feed of changes](crate::ServerBuilder::change_feed), if there is one. Otherwise call this on each of them.
    ///
    /// It has no effect unless the server was built with [`resource_updates`](crate::ServerBuilder::resource_updates).
    pub fn resource_updated(&self, uri: &str) {
        self.notify_of_resource(uri);
        if self.0.offers.load().profile.resource_updates {
            self.publish(|| Change::of_resource(uri));
        }
    }

    /// Notifies the subscriptions of this process.
    fn notify_of_resource(&self, uri: &str) {
        let offers = self.current_offers();
        let seen_by = |caller: &CallerInfo| offers.lists.reports(uri, caller);
        let is_hidden = offers.lists.has_hidden(uri);
        self.0.runtime.subscriptions.resource_updated(uri, is_hidden.then_some(&seen_by));
    }

    /// Notifies the subscribers of this list whose caller the rule accepts, on any connection of this process: for a change that the server does
    /// not see, as when the outcome of [`Tool::visible_if`](crate::Tool::visible_if) is another one now. The functions that add and remove
    /// items notify by themselves, and only those who see the item. The rule does not travel: by the [feed of changes](crate::ServerBuilder::change_feed),
    /// all subscribers of the list on other instances are notified.
    ///
    /// It has no effect unless the server was built with [`list_changed`](crate::ServerBuilder::list_changed).
    ///
    /// ```
    /// # use antiphon::server::{Server, offers::ListKind};
    /// fn promoted(server: &Server, user: &str) {
    ///     server.list_changed(ListKind::Tools, |caller| caller.principal().is_some_and(|who| who.subject() == Some(user)));
    /// }
    /// ```
    pub fn list_changed(&self, list: ListKind, whose: impl Fn(&CallerInfo) -> bool) {
        self.0.runtime.subscriptions.list_changed(list, Some(&whose));
        if self.0.offers.load().profile.list_changed {
            self.publish(|| Change::List(list));
        }
    }

    fn add<T: ListAccess>(&self, thing: T) -> Result<(), BuildError> {
        thing.settings().check_store(thing.key(), self.0.runtime.claims.is_some())?;
        let entry = Entry::new(thing)?;
        let make =
            |list: &List<T>, profile: &Profile| Ok(Some((list.with(entry.clone(), profile)?, entry.clone())));
        self.change(make).map(|_changed| ())
    }

    fn remove<T: ListAccess>(&self, key: &str) -> bool {
        self.change::<T>(|list, profile| list.without(key, profile)).unwrap_or_else(|error| {
            tracing::error!(error = %escaped(&error), key, "nothing was removed");
            false
        })
    }

    /// Replaces the offers. `make` returns the changed list and the item that makes the difference, or `None` if there is nothing to change. It is called
    /// again if another change came first, so that no change is lost.
    fn change<T: ListAccess>(
        &self,
        make: impl Fn(&List<T>, &Profile) -> Result<Option<(List<T>, Entry<T>)>, BuildError>,
    ) -> Result<bool, BuildError> {
        let mut current = self.0.offers.load_full();
        if !current.profile.list_changed {
            return Err(BuildError(
                "the lists can change only on a server that declared it: use `.list_changed(true)` on its builder"
                    .to_owned(),
            ));
        }
        let entry = loop {
            let made = make(T::of(&current.lists), &current.profile)?;
            let Some((list, entry)) = made else { return Ok(false) };
            let mut lists = current.lists.clone();
            *T::of_mut(&mut lists) = Arc::new(list);
            let changed = Arc::new(Offers::new(lists, Arc::clone(&current.profile), current.given.clone())?);
            let found = Guard::into_inner(self.0.offers.compare_and_swap(&current, changed));
            if Arc::ptr_eq(&found, &current) {
                break entry;
            }
            current = found;
        };
        // Notified after the change is visible, so that a notified client finds it.
        let seen_by = |caller: &CallerInfo| entry.is_visible_to(caller);
        self.0.runtime.subscriptions.list_changed(T::KIND, entry.is_hidden_from_some().then_some(&seen_by));
        self.publish(|| Change::List(T::KIND));
        Ok(true)
    }
}

impl Server {
    /// Waits until the other instances can receive the changes that were reported here so far. Changes are published in the background:
    /// a process that may stop or freeze behind its last reply, as on a platform for functions, awaits this function before that reply.
    /// Returns at once without a feed of changes; as long as the feed is not reachable, it waits.
    pub async fn changes_published(&self) {
        if let Some(feed) = &self.0.runtime.feed {
            feed.published().await;
        }
    }

    /// Publishes a change to the other instances, if there is a feed.
    pub(super) fn publish(&self, change: impl FnOnce() -> Change) {
        if let Some(feed) = &self.0.runtime.feed {
            feed.report(change());
        }
    }
}

impl OwnServer {
    /// Notifies the subscribers of this process of a change elsewhere. Who sees a resource or a task is decided here.
    pub(super) fn deliver(&self, change: Change) {
        let Some(server) = self.0.get().and_then(Weak::upgrade).map(Server) else { return };
        let (subscriptions, tasks) = (&server.0.runtime.subscriptions, &server.0.runtime.tasks);
        match change {
            Change::List(kind) => subscriptions.list_changed(kind, None),
            Change::Resource(digest) => {
                if let Some(uri) = subscriptions.uri_with(digest) {
                    server.notify_of_resource(&uri);
                }
            }
            Change::Task(digest) => tasks.iter().for_each(|tasks| tasks.changed_elsewhere(Some(digest))),
            Change::Everything => {
                ListKind::ALL.into_iter().for_each(|kind| subscriptions.list_changed(kind, None));
                subscriptions.all_uris().iter().for_each(|uri| server.notify_of_resource(uri));
                tasks.iter().for_each(|tasks| tasks.changed_elsewhere(None));
            }
        }
    }
}

impl ServerBuilder {
    /// Offers the same as [`with`](Self::with), with this text before the names of tools and prompts: two values of one
    /// type can then be offered side by side.
    ///
    /// ```
    /// # use antiphon::{server, server::Server};
    /// struct Database(&'static str);
    ///
    /// #[server]
    /// impl Database {
    ///     /// Tells where the database lives.
    ///     #[tool]
    ///     async fn region(&self) -> String {
    ///         self.0.to_owned()
    ///     }
    /// }
    ///
    /// // The tools are `eu_region` and `us_region`.
    /// let server = Server::builder("databases", "1.0.0")
    ///     .with_prefix("eu_", Database("eu-west-1"))
    ///     .with_prefix("us_", Database("us-east-1"))
    ///     .build()?;
    /// # Ok::<(), antiphon::server::BuildError>(())
    /// ```
    ///
    /// Resources and templates keep their URIs, and one server offers each URI once.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>, service: impl Service) -> Self {
        let (prefix, service) = (prefix.into(), Arc::new(service));
        self.offer(move |states, offered| {
            let (tools, prompts) = (offered.tools.len(), offered.prompts.len());
            service.offer(states, offered)?;
            for tool in offered.tools.iter_mut().skip(tools) {
                tool.definition.name.insert_str(0, &prefix);
            }
            for prompt in offered.prompts.iter_mut().skip(prompts) {
                prompt.definition.name.insert_str(0, &prefix);
            }
            Ok(())
        })
    }
}
