//! What a schema can cost, as far as can be said without a value.
//!
//! Work is counted in steps: one visit of one schema at one value is about one. The count is an upper bound: every branch
//! is taken to be visited, and no short cut of the validator is trusted, but one (see [`Edge::remembered`]).

use super::{
    MAX_CHAIN, MAX_COMPILED, MAX_WORK, NESTED_COMPILATIONS,
    document::Document,
    fault::{self, SchemaFault},
    keywords::Applied,
    reference::Reference,
};
use serde_json::Value;
use std::collections::HashMap;

/// Upper bounds for a schema and all that it applies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bound {
    /// Visits, weighed.
    pub(super) steps: u64,
    /// Regular expressions that are matched.
    pub(super) matches: u64,
    /// Schemas that are entered inside of one another.
    pub(super) chain: u32,
}

impl Bound {
    const ENDLESS: Self = Self { steps: u64::MAX, matches: u64::MAX, chain: u32::MAX };

    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.matches = self.matches.saturating_add(other.matches);
        self.chain = self.chain.max(other.chain);
    }
}

/// A schema, and the schemas that it applies.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) own: Bound,
    /// Regular expressions for the names of members.
    pub(super) patterns: u64,
    /// How many keywords look again at what others have looked at, and with them the schemas in place.
    pub(super) unevaluated: u64,
    pub(super) in_place: Vec<Edge>,
    pub(super) named: HashMap<String, usize>,
    pub(super) matched: Vec<usize>,
    pub(super) other: Vec<usize>,
    pub(super) names: Vec<usize>,
    pub(super) prefix: HashMap<usize, Vec<usize>>,
    pub(super) items: Vec<usize>,
    /// At a value without members: the schemas in place, with multiplicities.
    pub(super) flat: Bound,
    /// As `flat`, when an `unevaluated...` looks for what was evaluated.
    pub(super) flat_again: Bound,
    /// At any value: all schemas that are applied on any way. Endless if the schema is recursive.
    pub(super) unfolded: Bound,
    /// The same for schemas that reach each other.
    pub(super) component: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) to: usize,
    /// A reference that closes a recursion which has no other target. The validator keeps the verdict of such a target on
    /// an object or array, so that it is reached once and not once on every way. This is the bound on one such reference.
    pub(super) remembered: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Costs {
    pub(super) rules: Vec<Rules>,
    pub(super) steps_per_byte: u64,
    /// Whether work may be counted once where the validator remembers it.
    pub(super) remembers: bool,
}

/// What is visited again because a verdict was too cheap to be kept: the validator keeps those that took as many visits.
const FORGOTTEN: u64 = 16;

impl Costs {
    pub(super) fn of(document: &Document<'_>, references: &[Reference]) -> Result<Self, SchemaFault> {
        let mut rules: Vec<Rules> =
            (0..document.nodes.len()).map(|index| own_rules(document, index)).collect();
        for reference in references {
            rules[reference.from].in_place.push(Edge { to: reference.to, remembered: None });
        }
        let in_place: Vec<Vec<usize>> =
            rules.iter().map(|rules| rules.in_place.iter().map(|edge| edge.to).collect()).collect();
        let (order, cycle) = postorder(&in_place);
        if let Some(node) = cycle {
            return Err(SchemaFault::Endless(fault::short(&document.pointer(node))));
        }
        for node in order {
            flatten(&mut rules, node);
            if rules[node].flat.chain > MAX_CHAIN {
                return Err(SchemaFault::Chain);
            }
            if rules[node].flat.steps > MAX_WORK {
                return Err(SchemaFault::Costly);
            }
        }
        let all: Vec<Vec<usize>> = rules.iter().map(|rules| rules.applied().collect()).collect();
        let (order, _) = postorder(&all);
        unfold(&mut rules, &order);
        let component = components(&all, &order);
        let ways = rules[0].unfolded.chain.min(longest_ways(&all, &order, &component));
        let compiled = rules[0].unfolded.chain.min(document.deepest().saturating_mul(NESTED_COMPILATIONS));
        if ways > MAX_CHAIN || compiled > MAX_COMPILED {
            return Err(SchemaFault::Chain);
        }
        for (rules, &component) in rules.iter_mut().zip(&component) {
            rules.component = component;
        }
        let remembers = rules.iter().all(|rules| rules.unevaluated == 0);
        if remembers {
            remember(&mut rules, references, &all, &component);
        }
        Ok(Self { rules, steps_per_byte: 0, remembers })
    }
}

impl Rules {
    /// Every schema that is applied, one entry for each way.
    fn applied(&self) -> impl Iterator<Item = usize> {
        let lists = [&self.matched, &self.other, &self.names, &self.items];
        let in_place = self.in_place.iter().map(|edge| edge.to);
        let below = lists.into_iter().chain(self.prefix.values()).flatten().copied();
        in_place.chain(below).chain(self.named.values().copied())
    }
}

fn own_rules(document: &Document<'_>, index: usize) -> Rules {
    let mut rules = Rules::default();
    let node = &document.nodes[index];
    rules.own = Bound { steps: 1, matches: 0, chain: 1 };
    for (keyword, value) in node.value.as_object().into_iter().flatten() {
        rules.own.steps += match &**keyword {
            "const" | "enum" => size(value),
            "default" | "examples" => 0,
            _ => 1 + value.as_array().map_or(0, Vec::len) as u64,
        };
        match (&**keyword, value) {
            ("pattern", _) => rules.own.matches += 1,
            ("patternProperties", Value::Object(patterns)) => rules.patterns += patterns.len() as u64,
            ("dependentRequired" | "dependencies", Value::Object(names)) => {
                rules.own.steps += names.values().map(size).sum::<u64>();
            }
            ("unevaluatedProperties" | "unevaluatedItems", _) => rules.unevaluated += 1,
            _ => {}
        }
    }
    for (applied, to) in &node.edges {
        let to = *to;
        match applied {
            Applied::InPlace => rules.in_place.push(Edge { to, remembered: None }),
            Applied::Property(name) => {
                rules.named.insert(name.clone(), to);
            }
            Applied::Pattern => rules.matched.push(to),
            Applied::OtherProperty => rules.other.push(to),
            Applied::Name => rules.names.push(to),
            Applied::Item(at) => rules.prefix.entry(*at).or_default().push(to),
            Applied::EveryItem => rules.items.push(to),
            Applied::Nowhere => {}
        }
    }
    rules
}

/// The values in a value.
fn size(value: &Value) -> u64 {
    let (mut count, mut open) = (0, vec![value]);
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::String(text) => count += text.len() as u64 / 64,
            _ => {}
        }
    }
    count
}

/// All after those they lead to, but for cycles; and a node on a cycle, if there is one. Without recursion.
fn postorder(edges: &[Vec<usize>]) -> (Vec<usize>, Option<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; edges.len()];
    let (mut order, mut cycle) = (Vec::with_capacity(edges.len()), None);
    for start in 0..edges.len() {
        let mut open = vec![(start, 0)];
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        while let Some((node, at)) = open.last_mut() {
            match edges[*node].get(*at) {
                None => {
                    states[*node] = State::Done;
                    order.push(*node);
                    open.pop();
                }
                Some(&next) => {
                    *at += 1;
                    match states[next] {
                        State::New => {
                            states[next] = State::Open;
                            open.push((next, 0));
                        }
                        State::Open => cycle = Some(next),
                        State::Done => {}
                    }
                }
            }
        }
    }
    (order, cycle)
}

/// The schemas in place are done.
fn flatten(rules: &mut [Rules], node: usize) {
    let (mut flat, mut again) = (Bound::default(), Bound::default());
    for edge in &rules[node].in_place {
        flat.add(rules[edge.to].flat);
        again.add(rules[edge.to].flat_again);
    }
    for _ in 0..rules[node].unevaluated {
        flat.add(again);
    }
    flat.add(rules[node].own);
    flat.chain = flat.chain.max(again.chain).saturating_add(1);
    again.add(flat);
    rules[node].flat = flat;
    rules[node].flat_again = again;
}

fn unfold(rules: &mut [Rules], order: &[usize]) {
    let mut done = vec![None; rules.len()];
    let mut again = vec![Bound::default(); rules.len()];
    for &node in order {
        let mut bound = Bound::default();
        for to in rules[node].applied() {
            // What is not done is on the way here: a recursion.
            bound.add(done[to].unwrap_or(Bound::ENDLESS));
        }
        let mut looked = Bound::default();
        for edge in &rules[node].in_place {
            looked.add(again[edge.to]);
        }
        for _ in 0..rules[node].unevaluated {
            bound.add(looked);
        }
        bound.add(rules[node].own);
        bound.add(Bound { steps: rules[node].patterns, matches: rules[node].patterns, chain: 0 });
        bound.chain = bound.chain.saturating_add(1);
        done[node] = Some(bound);
        looked.add(bound);
        again[node] = looked;
        rules[node].unfolded = bound;
    }
}

/// Marks the references that close a recursion with one target only.
fn remember(rules: &mut [Rules], references: &[Reference], all: &[Vec<usize>], component: &[usize]) {
    let mut targets: HashMap<usize, Option<usize>> = HashMap::new();
    for reference in references.iter().filter(|it| component[it.from] == component[it.to]) {
        let target = targets.entry(component[reference.to]).or_insert(Some(reference.to));
        if *target != Some(reference.to) {
            *target = None;
        }
    }
    for target in targets.into_values().flatten() {
        let within = |node: usize| component[node] == component[target];
        // One round of the recursion: without what leads to the target again, the component is no longer cyclic.
        let mut round: HashMap<usize, u64> = HashMap::new();
        let inner: Vec<Vec<usize>> = all
            .iter()
            .enumerate()
            .map(|(node, edges)| match within(node) {
                true => edges.iter().copied().filter(|&to| within(to) && to != target).collect(),
                false => Vec::new(),
            })
            .collect();
        for node in postorder(&inner).0.into_iter().filter(|&node| within(node)) {
            let mut steps = rules[node].own.steps.saturating_add(rules[node].patterns);
            for &to in all[node].iter().filter(|&&to| to != target) {
                let below = round.get(&to).copied().unwrap_or(rules[to].unfolded.steps);
                steps = steps.saturating_add(below);
            }
            round.insert(node, steps);
        }
        let once = round.get(&target).copied().unwrap_or(u64::MAX).saturating_mul(FORGOTTEN);
        for reference in references.iter().filter(|it| it.to == target && within(it.from)) {
            for edge in rules[reference.from].in_place.iter_mut().filter(|edge| edge.to == target) {
                edge.remembered = Some(once);
            }
        }
    }
}

/// At least the length of the longest way from the root that visits no schema twice.
fn longest_ways(all: &[Vec<usize>], order: &[usize], component: &[usize]) -> u32 {
    // Each component counts as long as it is large. Components come to an end in the order in which their first nodes were
    // left for good, so those below are done.
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    component.iter().enumerate().for_each(|(node, &it)| members.entry(it).or_default().push(node));
    let mut longest: HashMap<usize, u32> = HashMap::new();
    for root in order.iter().filter(|&&node| component[node] == node) {
        let nodes = members.get(root).map_or(&[][..], |nodes| nodes);
        let below = nodes.iter().flat_map(|&node| &all[node]).map(|&to| component[to]);
        let below = below.filter(|it| it != root).filter_map(|it| longest.get(&it)).max();
        let size = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let whole = size.saturating_add(below.copied().unwrap_or(0));
        longest.insert(*root, whole);
    }
    component.first().and_then(|it| longest.get(it)).copied().unwrap_or(u32::MAX)
}

/// Nodes that reach each other have the same number: that of the one which was left last.
fn components(all: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let mut back = vec![Vec::new(); all.len()];
    for (node, edges) in all.iter().enumerate() {
        edges.iter().for_each(|&to| back[to].push(node));
    }
    let mut component = vec![usize::MAX; all.len()];
    for &root in order.iter().rev() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if component[node] == usize::MAX {
                component[node] = root;
                open.extend(&back[node]);
            }
        }
    }
    component
}
