//! A PostgreSQL server of a test, in a folder and on a socket of its own.

use std::process::Command;

use antiphon_store::{PostgresOptions, PostgresStore, tokio_postgres};

use super::folder::Folder;
use super::programs::{User, find, run};

/// A database server of a test: without TCP, unless it has TLS.
pub(crate) struct Server {
    pub(crate) folder: Folder,
    pub(crate) user: User,
    port: u16,
}

impl Server {
    /// Creates a server and starts it.
    pub(crate) fn start(name: &str) -> Self {
        let server = Self::create(name, 5432);
        server.run(&[]);
        server
    }

    pub(crate) fn create(name: &str, port: u16) -> Self {
        let (folder, user) = (Folder::new(name), User::postgres());
        user.own(&folder.path(""));
        let mut initdb = user.command(&find("initdb", "postgresql"));
        run(initdb.args(["--auth=trust", "--username=postgres", "--no-sync", "-D"]).arg(folder.path("data")));
        Self { folder, user, port }
    }

    /// Starts the server, and waits until it accepts connections.
    pub(crate) fn run(&self, settings: &[&str]) {
        let sockets = self.folder.path("");
        let mut options =
            format!("-p {} -c fsync=off -c unix_socket_directories={}", self.port, sockets.display());
        if settings.is_empty() {
            options.push_str(" -c listen_addresses=");
        }
        for setting in settings {
            options.push_str(&format!(" -c {setting}"));
        }
        let log = self.folder.path("log");
        let mut start = self.control();
        // The server must not have the pipes of the tests: their reader would wait for its end.
        run(start.args(["start", "-w", "-t", "120", "-o", &options, "-l"]).arg(log));
    }

    pub(crate) fn stop(&self) {
        run(self.control().args(["stop", "-w", "-m", "immediate"]));
    }

    fn control(&self) -> Command {
        let mut command = self.user.command(&find("pg_ctl", "postgresql"));
        command.arg("-D").arg(self.folder.path("data"));
        command
    }

    pub(crate) fn url(&self, role: &str) -> String {
        format!("host={} port={} user={role} dbname=postgres", self.folder.path("").display(), self.port)
    }

    pub(crate) async fn store(
        &self,
        options: PostgresOptions,
    ) -> Result<PostgresStore, antiphon_store::StoreError> {
        PostgresStore::connect(&self.url("postgres"), options).await
    }

    pub(crate) async fn execute(&self, statements: &str) {
        let (client, connection) =
            tokio_postgres::connect(&self.url("postgres"), tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }

    /// Returns the number of rows of a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {table}")).await
    }

    /// Returns the one number of a query.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        let (client, connection) =
            tokio_postgres::connect(&self.url("postgres"), tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let count = client.query_one(query, &[]).await.unwrap().get(0);
        drop(client);
        connection.await.unwrap().unwrap();
        count
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.control().args(["stop", "-m", "immediate"]).output());
    }
}
