use antiphon::tool;

#[tool(version = 2, rename("create"))]
async fn one() {}

#[tool(version = 2, rename("create", "create_db", "create_database"))]
async fn three() {}

#[tool(version = 2, rename("create", "create"))]
async fn the_same() {}

#[tool(version = 2, rename)]
async fn none() {}

#[tool(version = 2, on_version = "reject", rename("create", "create_db"))]
async fn refused() {}

#[tool(version = 2, rename("a", "b"), rename("b"))]
async fn the_second() {}

fn main() {}
