//! Options of the engine.

use std::time::Duration;

/// The options of [`DbosTasks`](crate::DbosTasks).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DbosOptions {
    pub(crate) schema: String,
    pub(crate) connections: u32,
    pub(crate) running: usize,
    pub(crate) lease: Duration,
}

impl Default for DbosOptions {
    fn default() -> Self {
        Self {
            schema: "antiphon_tasks".to_owned(),
            connections: 8,
            running: 256,
            lease: Duration::from_secs(30),
        }
    }
}

impl DbosOptions {
    /// Sets the schema of all tables, those of dbos included. One schema has the tasks of one server: all its instances use the
    /// same schema, and other servers use others. Default: `antiphon_tasks`. A missing schema is created.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets the number of connections for requests, and again for workflows. Default: 8.
    #[must_use]
    pub fn connections(mut self, number: u32) -> Self {
        self.connections = number;
        self
    }

    /// Sets the number of legs that run at once in this process; tasks that wait do not count. Default: 256.
    #[must_use]
    pub fn running(mut self, number: usize) -> Self {
        self.running = number;
        self
    }

    /// Sets the time until an instance that sends no heartbeat counts as dead, and others take its tasks over. Default: 30
    /// seconds.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Returns the fault of the options, if there is one.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        if self.schema.is_empty() || self.schema.len() > 40 || !self.schema.bytes().all(is_name) {
            return Some("the name of the schema has 1 to 40 of a-z, 0-9 and _");
        }
        if self.connections == 0 || self.running == 0 {
            return Some("an engine needs one connection and one leg at least");
        }
        if self.lease < Duration::from_millis(300) {
            return Some("the lease is 300 ms at least");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_named() {
        let options = DbosOptions::default;
        assert_eq!(options().fault(), None);
        for wrong in [
            options().schema(""),
            options().schema("Tasks"),
            options().schema("a\"b"),
            options().schema("a".repeat(41)),
            options().connections(0),
            options().running(0),
            options().lease(Duration::from_millis(299)),
        ] {
            assert!(wrong.fault().is_some(), "{wrong:?}");
        }
    }
}
