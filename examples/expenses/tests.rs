//! Each tool with each fault, also in sessions of 2025-11-25.

use crate::book::{Bank, Book};
use crate::tools;
use antiphon::{
    client::Call,
    store::{SqliteOptions, SqliteStore, rusqlite::Connection},
    testing::{Bench, Fault, Report, ScriptedUser},
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{env, fs, path::PathBuf};

/// The database of one run, which is deleted with it.
struct World {
    folder: PathBuf,
    store: SqliteStore,
    book: Book,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn bench() -> Bench {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::new(|effects| {
        let world = effects.provided::<World>();
        tools::server(world.store.clone(), world.book.clone(), (*effects.shared::<Bank>()).clone())
    });
    let bench = bench.provide(async |effects| {
        let name = format!("antiphon-expenses-test-{}-{}", std::process::id(), RUNS.fetch_add(1, Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let options = SqliteOptions::default().clock(effects.store_clock());
        let store = SqliteStore::open(folder.join("expenses.db"), options).await.unwrap();
        let file = folder.join("expenses.db");
        let book = Book::open(&file).unwrap();
        let insert = "INSERT INTO expenses (owner, project, cents) VALUES ('ada', 'apollo', 300)";
        Connection::open(&file).unwrap().execute(insert, []).unwrap();
        World { folder, store, book }
    });
    let user = ScriptedUser::new()
        .accept("form", json!({"project": "gemini", "cents": 20}))
        .accept("confirm", json!({"value": true}))
        .accept("reason", json!({"reason": "it was a mug"}));
    bench.user(user).bearer(["expenses", "expenses:pay"])
}

/// Runs a tool with each fault: `check` sees if the run was in a session, which ends with the result, the payments, and the book.
async fn check(tool: &str, arguments: Value, check: impl Fn(bool, usize, &Book)) -> Report {
    let report = bench().run_all_faults(tool, arguments).await;
    report.expect_same_result();
    assert!(report.runs().any(|(fault, _)| matches!(fault, Fault::Session)));
    assert_eq!(report.unknown().count(), 0);
    // Behind a lost session somebody calls again, and files what may be there.
    for (fault, run) in report.runs().filter(|(fault, _)| !matches!(fault, Fault::SessionCrash { .. })) {
        let effects = run.effects();
        let payments = effects.shared::<Bank>().payments();
        check(matches!(fault, Fault::Session), payments, &effects.provided::<World>().book);
    }
    report
}

#[tokio::test(start_paused = true)]
async fn an_expense_is_paid_once_and_marked() {
    let report = check("reimburse", json!({"id": 1}), |is_over, payments, book| {
        assert!(payments <= 1 && (payments == 1 || !is_over));
        let payment = book.expense(1).unwrap().unwrap().payment;
        assert_eq!(payment, (payments == 1).then(|| "payment 1".to_owned()));
    });
    report.await.plain().expect_text("Paid 300 cents to ada: payment 1.").expect_asked(&["confirm"]);
}

#[tokio::test(start_paused = true)]
async fn an_expense_is_filed_once() {
    let report = check("file_expense", json!({}), |is_over, payments, book| {
        let is_filed = |id| book.expense(id).unwrap().is_some();
        assert!(payments == 0 && !is_filed(3) && (is_filed(2) || !is_over));
    });
    report.await.plain().expect_text("Expense 2: 20 cents for gemini.").expect_asked(&["form"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_pays_nothing() {
    let report = check("report", json!({}), |_, payments, book| {
        assert_eq!((payments, book.expense(2).unwrap()), (0, None));
    });
    report.await.plain().expect_asked(&["confirm"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_asks() {
    let call = Call::prompt("dispute", json!({"id": "7"})).unwrap();
    bench().run(&call, None).await.expect_asked(&["reason"]);
    bench().run(&call, Some(&Fault::Session)).await.expect_asked(&["reason"]);
}
