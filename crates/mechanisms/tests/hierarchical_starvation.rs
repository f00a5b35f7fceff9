//! Cases in which naive hierarchical DRF starves a user, and in which excluding stopped users takes from their
//! account's siblings (after Bhattacharya et al., SoCC'13); and limits of what accounts guarantee.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;

use common::{exact, ratio};
use evenhand_mechanisms::{Account, AccountTree, Problem, User, property_named};
use evenhand_model::Rational;

fn user(demand: [u64; 2]) -> User<Rational> {
    User::new(demand.map(|d| ratio(d, 10)))
}

/// Places users in accounts of weight 1 under the root; `None` for those directly under it.
fn problem(users: Vec<User<Rational>>, accounts: usize, user_accounts: &[Option<usize>]) -> Problem<Rational> {
    let account = |_| Account { parent: None, weight: Rational::ONE };
    let tree = AccountTree::new((0..accounts).map(account).collect(), user_accounts.to_vec()).unwrap();
    Problem::new(2, users).unwrap().with_accounts(tree).unwrap()
}

/// Ten CPUs and ten GPUs. One user wants GPUs; an account has one user who wants CPUs and one who wants GPUs.
const GPU_USER: usize = 0;
const CPU_OF_ACCOUNT: usize = 1;
const GPU_OF_ACCOUNT: usize = 2;
const DEMANDS: [[u64; 2]; 3] = [[0, 1], [1, 0], [0, 1]];

/// Naive hierarchical DRF with tasks of one unit that end in the order in which they started, each replaced by another:
/// an account's share is the largest component of the sum of all it holds.
fn naive(turns: usize) -> [u64; 3] {
    let mut running: [u64; 3] = [0; 3];
    let mut order = VecDeque::new();
    for turn in 0..=turns {
        if turn > 0 {
            running[order.pop_front().unwrap()] -= 1_u64;
        }
        loop {
            let free = |r: usize| 10 - (0..3).map(|u| running[u] * DEMANDS[u][r]).sum::<u64>();
            let fits = |u: usize| (0..2).all(|r| DEMANDS[u][r] <= free(r));
            let of_account = [CPU_OF_ACCOUNT, GPU_OF_ACCOUNT].into_iter().filter(|u| fits(*u));
            let of_account = of_account.min_by_key(|u| running[*u]);
            let account_share = running[CPU_OF_ACCOUNT].max(running[GPU_OF_ACCOUNT]);
            let single = fits(GPU_USER).then_some(GPU_USER);
            let next = match (single, of_account) {
                (Some(single), Some(_)) if running[single] <= account_share => single,
                (Some(single), None) => single,
                (_, Some(of_account)) => of_account,
                (None, None) => break,
            };
            running[next] += 1;
            order.push_back(next);
        }
    }
    running
}

#[test]
fn holding_an_uncontended_resource_does_not_starve_the_account() {
    // At first the naive way looks right: about half of the GPUs for each, all CPUs for the user who wants them.
    assert_eq!(naive(0), [6, 10, 4]);
    // But the account counts as having everything, so each GPU that is released goes to the single user.
    assert_eq!(naive(1000), [10, 10, 0]);
    let problem = problem(DEMANDS.map(user).to_vec(), 1, &[None, Some(0), Some(0)]);
    assert_eq!(exact("drf", &problem).tasks, [5_u64, 10, 5].map(Rational::from));
}

#[test]
fn a_stopped_user_does_not_hold_its_account_back() {
    // The smallest share of an account's users determines its share: if it were that of the user whose CPUs are
    // saturated, the account would seem poor for ever and get all the GPUs.
    let users = [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]].map(user).to_vec();
    let problem = problem(users, 1, &[None, None, Some(0), Some(0), None]);
    let third = ratio(10, 3);
    let half = Rational::from(5_u64);
    assert_eq!(exact("drf", &problem).tasks, [third.clone(), third.clone(), third, half.clone(), half]);
}

#[test]
fn what_a_satisfied_user_holds_is_charged_to_its_account() {
    // One account: a user who wants 1/4 of the CPUs and no more, and one who wants (.9, 1). Beside it a user
    // of CPUs. If the account's share excluded the first as soon as it is satisfied, it would fall from .475 to
    // .25 and the account catch up: CPUs would be used up by the second before the user beside the account
    // has half of them. One unit of a task is a tenth of a resource here.
    let users = vec![user([1, 0]).limit(ratio(5, 2)), User::new([ratio(9, 10), Rational::ONE]), user([1, 0])];
    let problem = problem(users, 1, &[Some(0), Some(0), None]);
    let allocation = exact("drf", &problem);
    // Both at .25 the account's share is .475; then 1.9 d = .05 of the CPUs are left for d more of each.
    let d = ratio(5, 190);
    assert_eq!(allocation.tasks, [ratio(5, 2), ratio(1, 4) + &d, (ratio(475, 1000) + d) * Rational::from(10_u64)]);
    let incentive = property_named("sharing_incentive").unwrap();
    assert!(incentive.findings_exact(&problem, &allocation.tasks, &Rational::ZERO).is_empty());
    // The other way: the account's second user has .25 + x, the user beside it still .475.
    let x = (Rational::ONE - ratio(95, 100)) / ratio(9, 10);
    let left_out = [ratio(5, 2), ratio(1, 4) + x, ratio(475, 100)];
    assert_eq!(problem.loads(&left_out)[0], Rational::ONE);
    assert_eq!(incentive.findings_exact(&problem, &left_out, &Rational::ZERO)[0].who, Some(2));
}

#[test]
fn with_zero_demands_a_misreport_can_be_profitable_in_accounts() {
    // A user who pretends to need more makes its account seem to take more, so that it gets less while all rise; one of
    // its siblings then leaves it more of what only it continues with. Only this user rises after the first resource
    // saturates, so the effect is independent of how H-DRF counts users who have stopped.
    let tasks = |reported: u64| {
        let user = |demand: [u64; 3]| User::new(demand.map(|d| ratio(d, 2)));
        let users = vec![user([2, 1, 1]), user([0, 1, 1]), user([2, 0, reported]), user([1, 2, 0])];
        let tree = AccountTree::new(
            vec![Account { parent: None, weight: Rational::ONE }],
            vec![Some(0), Some(0), Some(0), None],
        );
        let problem = Problem::new(3, users).unwrap().with_accounts(tree.unwrap()).unwrap();
        exact("drf", &problem).tasks.swap_remove(2)
    };
    assert_eq!(tasks(0), ratio(3, 7));
    assert_eq!(tasks(2), ratio(7, 16));
}

#[test]
fn accounts_without_users_are_entitled_to_nothing() {
    let problem = problem(vec![user([1, 1]), user([1, 1])], 3, &[Some(0), Some(2)]);
    assert_eq!(problem.entitlement(1), ratio(1, 2));
    assert_eq!(exact("drf", &problem).tasks, [5_u64, 5].map(Rational::from));
}
