//! The tools, the prompt and the resource.

use crate::book::{Bank, Book, Expense};
use antiphon::{
    Form, Result,
    server::{Ctx, Json, Server, ServerBuilder, State, offers::CallerInfo},
    store::SqliteStore,
    tool,
    wire::{content::ResourceContents, forms::FormField, forms::FormSchema},
};

/// Returns the server. All instances share the file of the store.
pub(crate) fn server(store: SqliteStore, book: Book, bank: Bank) -> ServerBuilder {
    Server::builder("expenses", "1.0")
        .store(store.clone())
        .state(store)
        .state(book)
        .state(bank)
        .tool(file_expense)
        .tool(reimburse)
        .tool(list_expenses)
        .tool(report)
        .prompt(dispute)
        .resource(mine)
}

fn caller(ctx: &Ctx) -> String {
    ctx.principal().and_then(|principal| principal.subject()).unwrap_or("nobody").to_owned()
}

/// An app sends its name in a header, with each request.
fn by_app(ctx: &Ctx) -> String {
    let app = ctx.request().headers().and_then(|headers| headers.get("x-app")?.to_str().ok());
    app.map_or(String::new(), |app| format!(", by {app}"))
}

#[derive(serde::Deserialize)]
struct Filed {
    project: String,
    cents: i64,
}

/// Files an expense, with the projects of the moment as choices.
#[tool(write_ahead, needs(form))]
async fn file_expense(ctx: &Ctx, book: State<Book>, store: State<SqliteStore>) -> Result<String> {
    let project = FormField::one("project", book.projects()?).title("Project");
    let form = FormSchema::new(vec![project, FormField::integer("cents").title("Cents")]);
    let Filed { project, cents } = ctx.elicit_with("What have you spent?", form).await?;
    let (owner, name) = (caller(ctx), project.clone());
    // The row and the record of the step are one transaction: exactly once.
    let id: i64 = ctx
        .in_transaction("insert", &*store, move |tx| {
            let insert = "INSERT INTO expenses (owner, project, cents) VALUES (?1, ?2, ?3)";
            tx.execute(insert, (owner, name, cents))?;
            Ok(tx.last_insert_rowid())
        })
        .await?;
    Ok(format!("Expense {id}: {cents} cents for {project}{}.", by_app(ctx)))
}

fn pays(caller: &CallerInfo) -> bool {
    caller.has_scope("expenses:pay")
}

/// Pays an expense, once: also if it is called twice at the same time. Only those who may pay see the tool.
#[tool(write_ahead, visible_if(pays), needs(form))]
async fn reimburse(
    ctx: &Ctx,
    book: State<Book>,
    bank: State<Bank>,
    store: State<SqliteStore>,
    id: i64,
) -> Result<String> {
    let Some(Expense { owner, cents, .. }) = book.expense(id)? else {
        return Ok(format!("There is no expense {id}."));
    };
    if !ctx.confirm(format!("Pay {cents} cents to {owner}?")).await? {
        return Ok("Nothing was paid.".to_owned());
    }
    // A step that reads what it changes: another run of this call goes the same way, and another call finds it claimed.
    let claim = "UPDATE expenses SET payment = 'begun' WHERE id = ?1 AND payment IS NULL";
    if !ctx.in_transaction("claim", &*store, move |tx| Ok(tx.execute(claim, [id])? == 1)).await? {
        return Ok(format!("Expense {id} is paid already, or being paid."));
    }
    let pay = ctx.step("pay", async |step| bank.pay(step.key()).await.ok_or("the bank pays nothing".into()));
    // After a crash in the step, the bank knows if it has paid.
    let payment: String = pay.reconcile(async |key: String| Ok(bank.find(&key))).await?;
    let number = payment.clone();
    let mark = "UPDATE expenses SET payment = ?2 WHERE id = ?1";
    let _: usize = ctx.in_transaction("mark", &*store, move |tx| Ok(tx.execute(mark, (id, number))?)).await?;
    Ok(format!("Paid {cents} cents to {owner}: {payment}."))
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Page {
    expenses: Vec<Expense>,
    next: Option<i64>,
}

/// Lists your expenses.
#[tool(read_only)]
async fn list_expenses(ctx: &Ctx, book: State<Book>, behind: Option<i64>) -> Result<Json<Page>> {
    let expenses = book.expenses(&caller(ctx), behind.unwrap_or(0), 5)?;
    let next = expenses.last().filter(|_| expenses.len() == 5).map(|last| last.id);
    Ok(Json(Page { expenses, next }))
}

/// Sums your expenses up, project by project: a task, if the client has tasks.
#[tool(task = "optional", needs(form))]
async fn report(ctx: &Ctx, book: State<Book>) -> Result<String> {
    ctx.into_task().await?;
    let (owner, projects) = (caller(ctx), book.projects()?);
    let mut lines = Vec::new();
    for (number, (project, title)) in (0_u32..).zip(&projects) {
        ctx.report_progress(f64::from(number), Some(projects.len() as f64), Some(title));
        let cents: i64 = ctx.step(("sum", number), async |_| book.sum(&owner, project)).await?;
        lines.push(format!("{title} {cents}"));
    }
    let lines = lines.join(", ");
    let sends = ctx.confirm(format!("{lines}: send the report?")).await?;
    Ok(format!("{lines}: {}", if sends { "sent" } else { "kept" }))
}

#[derive(serde::Deserialize, Form)]
struct Reason {
    /// Reason
    reason: String,
}

/// Writes a letter about an expense.
#[antiphon::prompt]
async fn dispute(ctx: &Ctx, id: String) -> Result<String> {
    let Reason { reason } = ctx.elicit(format!("What is wrong with expense {id}?")).await?;
    Ok(format!("Write a polite letter about expense {id}: {reason}"))
}

/// The ids of your expenses.
#[antiphon::resource("expenses://mine", mime_type = "text/plain")]
async fn mine(ctx: &Ctx, book: State<Book>) -> Result<ResourceContents> {
    let expenses = book.expenses(&caller(ctx), 0, 100)?;
    let ids: Vec<String> = expenses.iter().map(|expense| expense.id.to_string()).collect();
    Ok(ResourceContents::text("expenses://mine", ids.join(" ")))
}
