//! The tasks under way: the replies of all servers.

use super::{record::TaskRecord, request::TaskRequest};
use crate::tools::TaskTool;
use crate::{
    history::person_of,
    log::Log,
    request::{Delivery, Observer},
};
use serde_json::Value;

/// The tasks under way, and those that wait for their check.
pub(crate) type TaskHistory = Log<TaskRecord>;

impl TaskHistory {
    /// Notes that a call begins that becomes a task.
    pub(super) fn begin(&self, call: &str, tool: TaskTool, plan: &'static str) {
        self.insert(call, |life| TaskRecord::new(life, tool, plan));
    }

    /// Notes that nobody waits for a task any more. Nobody received the id of an orphan.
    pub(super) fn ended(&self, call: &str, is_orphan: bool) {
        self.end(call, |record| record.is_orphan = is_orphan);
    }
}

impl Observer<TaskRequest> for TaskHistory {
    fn open_delivery(&self, request: &TaskRequest) {
        Self::open_delivery(self, &request.call);
    }

    fn close_delivery(&self, request: &TaskRequest) {
        Self::close_delivery(self, &request.call);
    }

    fn sent(&self, request: &TaskRequest, delivery: Delivery) {
        if request.person == person_of(&request.call) {
            self.with(&request.call, |record| record.leaves(request, delivery.number));
        }
    }

    fn replied(&self, request: &TaskRequest, delivery: Delivery, reply: &[u8]) {
        self.count_reply();
        let Ok(reply) = serde_json::from_slice::<Value>(reply) else { return };
        self.with(&request.call, |record| {
            if request.person == person_of(&request.call) {
                record.receives(request, delivery.number, delivery.process, &reply);
            } else {
                record.meets_stranger(&reply);
            }
        });
    }

    /// The reply may come to nobody, but the server may have taken the request: the record has no acknowledgement.
    fn cut(&self, _: &TaskRequest) {}
}
