//! Random programs, and random clients.

use crate::{
    case::{Carrier, Case, Move, MoveKind},
    shapes::ServerKind,
    tree::{Ask, Form, Joined, Kind, Name, Node, Program, Raw, Stage, Step, Text},
};
use proptest::prelude::*;
use std::sync::Arc;

/// One family of cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) shape: Shape,
    pub(crate) carriers: &'static [Carrier],
    /// Its programs wait for other things than questions, and end legs at checkpoints.
    pub(crate) waits: bool,
    /// The same, and steps fail for now, and handlers panic.
    pub(crate) fails: bool,
    /// Questions change between legs.
    pub(crate) changes: bool,
    /// Its calls are in a store: processes die, clients hang up and repeat, and calls become tasks.
    pub(crate) store: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    Awaits,
    ByHand,
    Resolved,
}

pub(crate) fn case(family: Family) -> BoxedStrategy<Case> {
    let program = match family.shape {
        Shape::Awaits => root(family).prop_map(Program::Awaits).boxed(),
        Shape::ByHand => {
            let asks = proptest::collection::vec(ask(family), 1..=3);
            let stage = (tree(family, 3, 8), asks).prop_map(|(before, asks)| Stage { before, asks });
            let stages = proptest::collection::vec(stage, 1..=3).prop_map(|mut stages| {
                // Behind the next returned round the handler has an answer from its own state: whether the question is
                // still the same is for the handler to say then.
                let last = stages.len() - 1;
                for ask in stages[..last].iter_mut().flat_map(|stage| &mut stage.asks) {
                    ask.text = if ask.text == Text::World { Text::Same } else { ask.text };
                }
                stages
            });
            (stages, tree(family, 3, 12)).prop_map(|(stages, last)| Program::ByHand(stages, last)).boxed()
        }
        Shape::Resolved => {
            let small = || prop_oneof![4 => tree(family, 3, 8), 1 => Just(Node::Seq(Vec::new()))];
            let resolvers = (small(), small(), small()).prop_map(|(a, b, c)| [a, b, c]);
            (resolvers, small()).prop_map(|(resolvers, last)| Program::Resolved(resolvers, last)).boxed()
        }
    };
    let moves = proptest::collection::vec(one_move(family), 0..8);
    // A change is of consequence where the rest goes on in order.
    let honest = proptest::bool::weighted(match () {
        () if family.store => 0.1,
        () if family.changes => 0.6,
        () => 0.3,
    });
    let carrier = proptest::sample::select(family.carriers);
    // What waits for other things may come to another end of a leg when it is replayed.
    let checked = u32::from(!family.waits && !family.changes);
    // A text that changes counts, too.
    let strict = if family.changes { 0 } else { 2 };
    let server = prop_oneof![
        7 => Just(ServerKind::Usual),
        2 => Just(ServerKind::Small),
        checked => Just(ServerKind::Checked),
        strict => Just(ServerKind::Strict),
    ];
    let server = if family.store { Just(ServerKind::Usual).boxed() } else { server.boxed() };
    let reruns = proptest::bool::weighted(if family.store { 0.3 } else { 0.0 });
    (program, any::<u64>(), moves, honest, carrier, server, reruns)
        .prop_map(|(program, seed, mut moves, honest, carrier, server, reruns)| {
            if honest {
                let plainly = |it: &Move| Move { what: MoveKind::Sends, answers: it.answers | 0xf, ..*it };
                moves.iter_mut().for_each(|it| *it = plainly(it));
            }
            let program = Arc::new(program.named());
            // A panic drops the questions beside it, which is reported.
            let reported = server == ServerKind::Checked && program.unwinds();
            let server = if reported { ServerKind::Usual } else { server };
            Case { carrier, program, seed, server, reruns, moves }
        })
        .boxed()
}

fn one_move(family: Family) -> impl Strategy<Value = Move> {
    let cuts = (0_u8..12, any::<bool>()).prop_map(|(polls, rests)| MoveKind::Cuts { polls, rests });
    let what = prop_oneof![
        16 => Just(MoveKind::Sends),
        2 => Just(MoveKind::Loses),
        if family.waits { 4 } else { 2 } => cuts,
        2 => (0_u8..4).prop_map(MoveKind::Returns),
        1 => any::<bool>().prop_map(MoveKind::Twice),
        if family.store { 8 } else { 0 } => (1_u8..130).prop_map(MoveKind::HangsUp),
        if family.store { 16 } else { 0 } =>
            (prop_oneof![3 => 0_u8..10, 1 => 10_u8..24], any::<bool>()).prop_map(|(after, takes_effect)| MoveKind::Dies { after, takes_effect }),
        u32::from(family.store) => Just(MoveKind::Cancels),
    ];
    let pause = if family.store { (0_u8..8).boxed() } else { Just(0).boxed() };
    let bad = prop_oneof![3 => Just(0), 1 => any::<u8>()];
    let answers = prop_oneof![1 => Just(0xff), 2 => any::<u8>()];
    let world =
        if family.changes { prop_oneof![2 => Just(0_u8), 1 => 1_u8..3].boxed() } else { Just(0).boxed() };
    (answers, bad, any::<bool>(), any::<bool>(), world, pause, what).prop_map(
        |(answers, bad, extra, reversed, world, pause, what)| Move {
            answers,
            bad,
            extra,
            reversed,
            world,
            pause,
            what,
        },
    )
}

fn name() -> impl Strategy<Value = Name> {
    (0_u8..3).prop_map(|letter| Name { letter, number: 0 })
}

fn raw(family: Family) -> impl Strategy<Value = Raw> {
    // Shorter and longer than the grace of a leg; rarely longer than a step without its client has.
    let long = u32::from(family.store);
    let millis = prop_oneof![8 => 1_u16..6, 8 => 45_u16..70, 4 * long => 6_u16..130, long => 900_u16..1_200];
    prop_oneof![(1_u8..4).prop_map(Raw::Yields), (0_u8..3).prop_map(Raw::Task), millis.prop_map(Raw::Sleeps),]
}

fn ask(family: Family) -> impl Strategy<Value = Ask> {
    let form = prop_oneof![Just(Form::Pick), Just(Form::Sure), Just(Form::Note)];
    let text = match family.changes {
        false => prop_oneof![Just(Text::Own), Just(Text::Same)].boxed(),
        true => prop_oneof![1 => Just(Text::Own), 3 => Just(Text::Same), 3 => Just(Text::World)].boxed(),
    };
    (name(), form, any::<bool>(), text).prop_map(|(name, form, unwraps, text)| Ask {
        name,
        form,
        unwraps,
        text,
    })
}

fn step(family: Family) -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        6 => Just(Kind::Done),
        2 => Just(Kind::Fails),
        2 => Just(Kind::Pinned),
        1 => (0_u8..3, any::<bool>()).prop_map(|(fails, panics)| Kind::Retried { fails, panics }),
        u32::from(family.fails) => any::<bool>().prop_map(|panics| Kind::Flaky { panics }),
    ];
    let inside = if family.waits { proptest::option::of(raw(family)).boxed() } else { Just(None).boxed() };
    let reconciles = proptest::bool::weighted(if family.store { 0.9 } else { 0.0 });
    (name(), kind, inside, reconciles).prop_map(|(name, kind, raw, reconciles)| Step {
        name,
        kind,
        raw,
        reconciles,
    })
}

fn leaf(family: Family) -> BoxedStrategy<Node> {
    let (ask, step) = (ask(family).prop_map(Node::Ask), step(family).prop_map(Node::Step));
    let checkpoint = (name(), any::<bool>())
        .prop_map(move |(name, now)| Node::Checkpoint { name, now: now && family.waits });
    if !family.waits {
        return prop_oneof![8 => ask, 8 => step, 1 => checkpoint, u32::from(!family.store) => Just(Node::Throws)].boxed();
    }
    prop_oneof![
        8 => ask,
        8 => step,
        4 => raw(family).prop_map(Node::Raw),
        3 => Just(Node::Takes),
        2 => checkpoint,
        // A wait that no step records may decide what a panic drops.
        u32::from(!family.store) => Just(Node::Throws),
        2 * u32::from(family.store) => Just(Node::IntoTask),
        u32::from(family.fails) => name().prop_map(Node::Panics),
    ]
    .boxed()
}

/// Several trees, most of them in order: a random tree alone is small, and a change is of consequence for what comes behind.
fn root(family: Family) -> BoxedStrategy<Node> {
    let several = |most| proptest::collection::vec(tree(family, 3, 10), 2..=most);
    prop_oneof![
        9 * u32::from(family.store) => contests(family).prop_map(Node::Seq),
        2 => tree(family, 5, 28),
        if family.changes { 5 } else { 3 } => several(6).prop_map(Node::Seq),
        1 => (joined(), several(4)).prop_map(|(joined, nodes)| Node::Join(joined, nodes)),
        1 => (name(), several(3)).prop_map(|(name, nodes)| Node::Select(name, nodes)),
    ]
    .boxed()
}

/// Branches of steps and waits side by side, and what follows: what a crash may change.
fn contests(family: Family) -> impl Strategy<Value = Vec<Node>> {
    let raw = u32::from(family.waits);
    // A task shows its questions while its steps run.
    let is_task = family.carriers.iter().any(|carrier| carrier.is_task());
    let part = prop_oneof![
        6 => step(family).prop_map(Node::Step),
        3 * raw => self::raw(family).prop_map(Node::Raw),
        if is_task { 6 } else { 2 } => ask(family).prop_map(Node::Ask),
        raw => Just(Node::IntoTask),
    ];
    let lanes = || {
        proptest::collection::vec(proptest::collection::vec(part.clone(), 1..4).prop_map(Node::Seq), 2..=3)
    };
    let contest = prop_oneof![
        4 => (name(), lanes()).prop_map(|(name, nodes)| Node::Select(name, nodes)),
        2 => (name(), lanes()).prop_map(|(name, nodes)| Node::Catch(Box::new(Node::Try(name, nodes)))),
        3 => (joined(), lanes()).prop_map(|(joined, nodes)| Node::Join(joined, nodes)),
    ];
    let nested = (joined(), contest.clone(), contest.clone())
        .prop_map(|(joined, one, two)| Node::Join(joined, vec![one, two]));
    let node = prop_oneof![4 => contest, 1 => nested, 3 => part.clone(), 1 => tree(family, 3, 8)];
    proptest::collection::vec(node, 2..=5)
}

fn joined() -> impl Strategy<Value = Joined> + Clone {
    prop_oneof![
        2 => Just(Joined::Ours),
        2 => Just(Joined::Futures),
        1 => Just(Joined::Macro),
        2 => Just(Joined::Unordered),
        1 => (1_u8..3).prop_map(Joined::Buffered),
    ]
}

/// Catches a panic. With a store, all runs must decide alike, also what a panic drops: see
/// `regressions::a_panic_in_a_race_is_decided_again`.
fn unwound(family: Family, name: Name, node: Node) -> Node {
    if family.store && node.panics_in_a_race() { node } else { Node::Unwind(name, Box::new(node)) }
}

fn tree(family: Family, depth: u32, size: u32) -> BoxedStrategy<Node> {
    let nested = move |inner: BoxedStrategy<Node>| {
        let several = |most| proptest::collection::vec(inner.clone(), 2..=most);
        let two = || (inner.clone(), inner.clone()).prop_map(|(one, two)| (Box::new(one), Box::new(two)));
        prop_oneof![
            5 => several(4).prop_map(Node::Seq),
            5 => (joined(), several(3)).prop_map(|(joined, nodes)| Node::Join(joined, nodes)),
            2 => (name(), several(3)).prop_map(|(name, nodes)| Node::Try(name, nodes)),
            4 => (name(), several(3)).prop_map(|(name, nodes)| Node::Select(name, nodes)),
            1 => two().prop_map(|(first, second)| Node::Pipe(first, second)),
            1 => (joined(), two()).prop_map(|(joined, (first, second))| Node::Feed(joined, first, second)),
            1 => (name(), inner.clone()).prop_map(|(name, node)| Node::Scope(name, Box::new(node))),
            2 => (name(), any::<bool>(), 1_u8..4, inner.clone())
                .prop_map(|(name, scoped, most, body)| Node::Loop { name, scoped, most, body: Box::new(body) }),
            2 => two().prop_map(|(yes, no)| Node::If(yes, no)),
            1 => inner.clone().prop_map(|node| Node::Catch(Box::new(node))),
            1 => inner.clone().prop_map(|node| Node::Helper(Box::new(node))),
            1 => (name(), inner.clone()).prop_map(move |(name, node)| unwound(family, name, node)),
        ]
    };
    leaf(family).prop_recursive(depth, size, 4, move |inner| nested(inner.boxed())).boxed()
}
