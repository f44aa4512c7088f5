use antiphon::{
    server,
    server::{Ctx, Server},
};

struct Files;

#[server]
impl Files {
    #[tool(readonly)]
    async fn read(&self, ctx: &Ctx, #[arg(min_length = 1)] path: String) -> String {
        format!("{} {path}", ctx.leg())
    }
}

fn main() {
    let _ = Server::builder("s", "1").with(Files);
}
