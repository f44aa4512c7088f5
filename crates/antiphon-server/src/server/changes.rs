//! The changes of other instances, for the subscribers of this one.

use super::{OwnServer, Server};
use crate::feed::{Change, ListKind};
use std::sync::Weak;

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
