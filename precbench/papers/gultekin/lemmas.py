"""The lemmas and theorems of gultekin beside the deviations that they bound."""

# R is the risk of the distribution, R_N of all pairs in a sample of N rows, and R_S of
# S of these pairs. Each is w' Sigma w / 2 - mu' w, with the means mu of z and Sigma of
# z z', z = x1 - x0 for a positive x1 and a negative x0. In the ball ||w|| <= W, R is
# least at w*, R_N at w_N (BBR) and R_S at w_S (LCBR). A statement bounds the
# probability that its deviation is eps or more:
#
#   Lemma 1        max |R - R_N| over the ball          Theorem 1   R(w_N) - R(w*)
#   Lemma 2 (i)    max |w' (Sigma_S - Sigma_N) w|       Theorem 2   R_N(w_S) - R_N(w_N)
#   Lemma 2 (ii)   max 2 |(mu_S - mu_N)' w|             Theorem 3   R(w_S) - R(w*)
#
# The bounds are re-derived with X = 1, the largest norm of a row, so that ||z|| <= 2:
#
# Lemma 1. Within a distance r of w, R - R_N changes by at most C_1 r, so it suffices to
# cover the ball of radius W (the paper: the unit sphere) by balls of radius r = eps /
# (2 C_1), for which (1 + 2 W / r)^D balls are enough. A row changes R_N(w) by at most
# (2 W^2 + 2 W) / N_c, N_c the rows of its class; the printed C_2 / N_c is more, and
# McDiarmid's inequality gives the exponent as printed. Theorem 1 is Lemma 1 with eps /
# 2.
#
# Lemma 2. (i) The maximum is W^2 ||Sigma_S - Sigma_N||, and the matrix Bernstein
# inequality with the variance 4 ||Sigma_N|| / S and terms of at most 8 / S gives what
# is printed. (ii) The maximum is 2 W ||mu_S - mu_N||. (28) needs the norm of z, L = 2,
# which makes eps sqrt(S) / (4 W); printed is eps sqrt(S) / (2 W).
#
# Theorem 2. R_N(w_S) - R_N(w_N) is at most the sum of the maxima of Lemma 2, so (i) and
# (ii) are taken with eps / 2 and delta / 2. This makes the first term of (11) as
# printed and the second 64 W^2 / eps^2 (...)^2; printed is 4 W^2 / eps^2 (...)^2, as if
# (ii) had eps sqrt(S) / W. Theorem 3 is Lemma 1 with eps / 5, four times, and Theorem 2
# with eps / 5.

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat

from precbench.core.errors import InputError
from precbench.core.studies import AtLeastTwo, Count, Seed, Share, Sizes, table_of
from precbench.papers.gultekin.mixtures import MixtureProblem, draw_mixture_pair
from precbench.solvers.bbr.ball import minimise_over_ball


class _Row(NamedTuple):
    """A value of the study; NaN: no number."""

    what: str
    statement: str
    rows: float
    pairs: float
    epsilon: float
    quantity: str
    value: float


class Bounds(NamedTuple):
    """Right sides of Lemmas 1 and 2 with X = 1, and the eps at which they are delta."""

    radius: float  # W
    n_features: int  # D
    covered: float  # radius of the ball, or sphere, that is covered in Lemma 1
    # Lemma 2 (ii) has eps sqrt(S) / (factor W): in the lemma, and where (11) and (17)
    # use it.
    lemma_factor: float
    theorem_factor: float

    def uniform(self, n: int, delta: float) -> float:
        """Return the eps for which Lemma 1 gives delta, with n / 2 rows a class.

        It solves delta = 2 (1 + 4 r C_1 / eps)^D exp(-n eps^2 / (8 C_2^2)), where r is
        `covered`.
        """
        from scipy.optimize import brentq

        c_1 = 8 * self.radius + 4
        c_2 = 3 * self.radius**2 + 2 * self.radius

        def excess(epsilon: float) -> float:
            """Return log(right side / delta), which falls with epsilon."""
            log_cover = self.n_features * math.log1p(4 * self.covered * c_1 / epsilon)
            return math.log(2 / delta) + log_cover - epsilon**2 * n / (8 * c_2**2)

        high = 1.0  # doubled until the root lies below `high`
        while excess(high) > 0:
            high *= 2
        return float(brentq(excess, 1e-9, high))  # where it is 0

    def quadratic(self, s: int, delta: float, norm: float) -> float:
        """Return the eps for which Lemma 2 (i) gives delta; `norm` is ||Sigma_N||.

        It solves delta = 2 D exp(-S eps^2 / (constant + slope eps)), a quadratic
        equation.
        """
        scale = math.log(2 * self.n_features / delta) / s
        constant, slope = self._bernstein(norm)
        half = slope * scale / 2
        return half + math.sqrt(half**2 + constant * scale)  # the positive root

    def quadratic_probability(self, s: int, epsilon: NDArray, norm: float) -> NDArray:
        """Return the delta of each eps: the inverse of `quadratic`."""
        constant, slope = self._bernstein(norm)
        exponents = -s * epsilon**2 / (constant + slope * epsilon)
        return 2 * self.n_features * np.exp(exponents)

    def _bernstein(self, norm: float) -> tuple[float, float]:
        """Return the constant and the slope of Lemma 2 (i)."""
        return 8 * norm * self.radius**4, 16 / 3 * self.radius**2

    def linear(self, s: int, delta: float, factor: float) -> float:
        """Return the eps for which Lemma 2 (ii) gives delta, with a factor of `Bounds`.

        It solves delta = 2 exp(-(eps sqrt(S) / (factor W) - 1)^2 / 2).
        """
        root = 1 + math.sqrt(2 * math.log(2 / delta))
        return factor * self.radius * root / math.sqrt(s)

    def linear_probability(self, s: int, epsilon: NDArray, factor: float) -> NDArray:
        """Return the delta of each eps: the inverse of `linear`; 2 is vacuous."""
        beyond = np.maximum(epsilon * math.sqrt(s) / (factor * self.radius) - 1, 0)
        return 2 * np.exp(-(beyond**2) / 2)

    def theorem_2(self, s: int, delta: float, norm: float) -> float:
        """Return the least eps for which S pairs satisfy both terms of (11)."""
        quadratic = self.quadratic(s, delta / 2, norm)
        return 2 * max(quadratic, self.linear(s, delta / 2, self.theorem_factor))

    def theorem_2_probability(self, s: int, epsilon: NDArray, norm: float) -> NDArray:
        """Return the least delta for which S pairs satisfy both terms of (11)."""
        quadratic = self.quadratic_probability(s, epsilon / 2, norm)
        linear = self.linear_probability(s, epsilon / 2, self.theorem_factor)
        return 2 * np.maximum(quadratic, linear)


_BoundsByName = dict[str, Bounds]  # "re-derived" and "printed"


def bounds_of(radius: float, n_features: int) -> _BoundsByName:
    """Return the bounds as re-derived at the head of the file, and as printed."""
    return {
        "re-derived": Bounds(
            radius, n_features, covered=radius, lemma_factor=4, theorem_factor=4
        ),
        "printed": Bounds(
            radius, n_features, covered=1, lemma_factor=2, theorem_factor=1
        ),
    }


@table_of("what", "statement", "rows", "pairs", "epsilon", "quantity", "value")
def pair_bounds(
    problem: MixtureProblem,
    features: Count,  # D
    population: AtLeastTwo,  # rows of each class
    rows: Sizes,  # N
    pairs: Sizes,  # S
    draws: AtLeastTwo,  # samples, and draws of pairs, to measure deviations
    radius: PositiveFloat,  # W, of the ball in which w lies
    delta: Share,
    points: AtLeastTwo,  # of a curve of probabilities
    coins: AtLeastTwo,  # S of the sample of coins
    seed: Seed,
) -> Iterator[_Row]:
    """Compare the bounds of Lemmas 1 and 2 and Theorems 1 to 3 with deviations."""
    # The distribution is a finite population of rows of a Gaussian mixture, divided by
    # the largest norm, so that X is 1 and all expectations are sums. Samples of N rows,
    # half of them positive, are drawn with replacement. One more sample, of coins, has
    # half of each class at 1 and half at -1, on a line: the distribution of its
    # deviations is known. ``measured`` is the quantile of the deviations at 1 - delta,
    # for Lemma 1 of upper bounds of the maximum.
    for n in rows:
        if n % 2:
            raise InputError(
                f"rows: {n} is odd, and half are to be positive; give even numbers"
            )
    bounds = bounds_of(radius, features)
    mixture = draw_mixture_pair(
        problem.components, problem.sigma, features, np.random.default_rng([seed, 0])
    )
    X, y = mixture.sample(population, population, np.random.default_rng([seed, 1]))
    X /= np.linalg.norm(X, axis=1).max()
    all_rows = _Sample.whole(X[y > 0], X[y < 0])
    at_zero: dict[int, float] = {}  # by n: the excess of w = 0, where R_N is 0
    statements: dict[int, list[_PairStatement]] = {}  # by n
    for n in rows:
        rng = np.random.default_rng([seed, 2, n])
        sample = all_rows.drawn(n // 2, rng)  # whose pairs are drawn
        risk = sample.risk()  # R_N
        at_zero[n] = -risk(risk.minimiser(radius))
        of_samples = _sample_deviations(all_rows, n, pairs, draws, radius, rng)
        yield from _compare_samples(of_samples, n, pairs, delta, bounds)
        statements[n] = []
        for s in pairs:
            deviations = _pair_deviations(sample, s, draws, radius, rng)
            statements[n] += _pair_statements(deviations, s, risk.norm)
        for statement in statements[n]:
            stated = {name: statement.epsilon(b, delta) for name, b in bounds.items()}
            yield from _compare(
                statement.name, n, statement.pairs, statement.values, delta, stated
            )
    for n, excess in at_zero.items():
        yield _Row(
            what="deviation",
            statement="w = 0",
            rows=n,
            pairs=np.nan,
            epsilon=np.nan,
            quantity="measured",
            value=excess,
        )
    last = rows[-1]
    for statement in statements[last]:
        yield from _probabilities(statement, last, delta, points, bounds)
    yield from _coins(coins, points, radius)


class _QuadraticRisk(NamedTuple):
    """The risk w' second w / 2 - mean' w, w' Sigma w / 2 - mu' w at the head."""

    mean: NDArray[np.float64]
    second: NDArray[np.float64]

    def __call__(self, w: NDArray) -> float:
        return float(w @ self.second @ w / 2 - self.mean @ w)

    def __sub__(self, other: "_QuadraticRisk") -> "_QuadraticRisk":
        return _QuadraticRisk(self.mean - other.mean, self.second - other.second)

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.second, 2))

    def minimiser(self, radius: float) -> NDArray[np.float64]:
        # The mean of z lies in the range of the mean of z z', but for rounding.
        return minimise_over_ball(self.second, self.mean, radius, mean_in_range=True)


class _Sample(NamedTuple):
    """A sample of the rows of a population."""

    pos: NDArray[np.float64]  # all of the population
    neg: NDArray[np.float64]
    drawn_pos: NDArray[np.intp]  # the numbers of the positives in the sample
    drawn_neg: NDArray[np.intp]  # of the negatives

    @classmethod
    def whole(cls, pos: NDArray[np.float64], neg: NDArray[np.float64]) -> "_Sample":
        return cls(pos, neg, np.arange(len(pos)), np.arange(len(neg)))

    def drawn(self, n: int, rng: np.random.Generator) -> "_Sample":
        """Draw a sample of n rows of each class."""
        drawn_pos = rng.integers(len(self.pos), size=n)
        drawn_neg = rng.integers(len(self.neg), size=n)
        return self._replace(drawn_pos=drawn_pos, drawn_neg=drawn_neg)

    def risk(self) -> _QuadraticRisk:
        """Return the risk over all pairs of the sample.

        With z = x1 - x0, z z' = x1 x1' + x0 x0' - x1 x0' - x0 x1'.
        """
        mean_pos, second_pos = _moments(self.pos, self.drawn_pos)
        mean_neg, second_neg = _moments(self.neg, self.drawn_neg)
        cross = np.outer(mean_pos, mean_neg)
        return _QuadraticRisk(
            mean=mean_pos - mean_neg,
            second=second_pos + second_neg - cross - cross.T,
        )

    def risk_of(self, n_pairs: int, rng: np.random.Generator) -> _QuadraticRisk:
        """Return the risk over the pairs that `LCBR` draws with this generator."""
        # The pair of the i-th positive and the k-th negative has the number
        # i * n_neg + k.
        n_pos = len(self.drawn_pos)
        n_neg = len(self.drawn_neg)
        numbers = rng.integers(n_pos * n_neg, size=n_pairs)
        i, k = np.divmod(numbers, n_neg)
        z = self.pos[self.drawn_pos[i]] - self.neg[self.drawn_neg[k]]
        return _QuadraticRisk(z.mean(axis=0), z.T @ z / n_pairs)


def _moments(
    rows: NDArray[np.float64], numbers: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of x and of x x' over the rows with these numbers."""
    shares = np.bincount(numbers, minlength=len(rows)) / len(numbers)
    return shares @ rows, (rows.T * shares) @ rows


class _SampleDeviation(NamedTuple):
    """What Lemma 1, Theorem 1 and Theorem 3 bound, of one sample of n rows."""

    lemma_1: float  # an upper bound of this deviation
    theorem_1: float
    theorem_3: list[float]  # by number of pairs
    norm: float  # ||Sigma_N||


def _sample_deviations(
    population: _Sample,
    n: int,
    pairs: list[int],
    draws: int,
    radius: float,
    rng: np.random.Generator,
) -> list[_SampleDeviation]:
    """Draw samples of n rows, and measure how far each deviates from the population."""
    risk = population.risk()  # R
    least = risk(risk.minimiser(radius))  # R(w*)
    deviations = []
    for _ in range(draws):
        sample = population.drawn(n // 2, rng)
        sample_risk = sample.risk()  # R_N
        difference = sample_risk - risk
        # max |R_N - R| over the ball is at most W^2 ||Sigma_N - Sigma|| / 2 +
        # W ||mu_N - mu||, as each term has its own maximiser.
        most = radius**2 * difference.norm / 2
        most += radius * float(np.linalg.norm(difference.mean))
        w_n = sample_risk.minimiser(radius)
        w_s = [sample.risk_of(s, rng).minimiser(radius) for s in pairs]
        deviations.append(
            _SampleDeviation(
                lemma_1=most,
                theorem_1=risk(w_n) - least,
                theorem_3=[risk(w) - least for w in w_s],
                norm=sample_risk.norm,
            )
        )
    return deviations


class _PairDeviations(NamedTuple):
    """What Lemma 2 (i), Lemma 2 (ii) and Theorem 2 bound, by draw of s pairs."""

    quadratic: NDArray[np.float64]
    linear: NDArray[np.float64]
    theorem_2: NDArray[np.float64]


def _pair_deviations(
    sample: _Sample, s: int, draws: int, radius: float, rng: np.random.Generator
) -> _PairDeviations:
    """Draw s pairs of one sample many times, and measure how far they are from it."""
    risk = sample.risk()  # R_N
    least = risk(risk.minimiser(radius))  # R_N(w_N)
    quadratic = []
    linear = []
    excesses = []
    for _ in range(draws):
        pair_risk = sample.risk_of(s, rng)  # R_S
        difference = pair_risk - risk
        # W^2 ||Sigma_S - Sigma_N|| and 2 W ||mu_S - mu_N||
        quadratic.append(radius**2 * difference.norm)
        linear.append(2 * radius * float(np.linalg.norm(difference.mean)))
        w_s = pair_risk.minimiser(radius)
        excesses.append(risk(w_s) - least)
    return _PairDeviations(
        quadratic=np.array(quadratic),
        linear=np.array(linear),
        theorem_2=np.array(excesses),
    )


def _compare_samples(
    deviations: list[_SampleDeviation],
    n: int,
    pairs: list[int],
    delta: float,
    bounds: _BoundsByName,
) -> Iterator[_Row]:
    """Yield Lemma 1, Theorem 1, then Theorem 3 for each number of pairs."""
    values = [sample.lemma_1 for sample in deviations]
    lemma_1 = {name: b.uniform(n, delta) for name, b in bounds.items()}
    yield from _compare("Lemma 1", n, np.nan, values, delta, lemma_1)
    # Theorem 1 is Lemma 1 with eps / 2.
    values = [sample.theorem_1 for sample in deviations]
    theorem_1 = {name: 2 * eps for name, eps in lemma_1.items()}
    yield from _compare("Theorem 1", n, np.nan, values, delta, theorem_1)
    # Theorem 3 is Lemma 1 and Theorem 2 with eps / 5, and with half of delta each.
    # The largest norm makes one bound for all samples.
    norm = max(sample.norm for sample in deviations)
    for i, s in enumerate(pairs):
        values = [sample.theorem_3[i] for sample in deviations]
        theorem_3 = {
            name: 5 * max(b.uniform(n, delta / 2), b.theorem_2(s, delta / 2, norm))
            for name, b in bounds.items()
        }
        yield from _compare("Theorem 3", n, s, values, delta, theorem_3)


class _PairStatement(NamedTuple):
    """A statement about S pairs, and the measured deviations that it bounds."""

    name: str
    pairs: int  # S
    values: NDArray[np.float64]  # the deviations
    norm: float  # ||Sigma_N||

    def epsilon(self, bounds: Bounds, delta: float) -> float:
        """Return the eps at which the statement's bound is delta."""
        if self.name == _QUADRATIC:
            return bounds.quadratic(self.pairs, delta, self.norm)
        if self.name == _LINEAR:
            return bounds.linear(self.pairs, delta, bounds.lemma_factor)
        return bounds.theorem_2(self.pairs, delta, self.norm)

    def probability(self, bounds: Bounds, epsilon: NDArray) -> NDArray:
        """Return the statement's bound at each eps."""
        if self.name == _QUADRATIC:
            return bounds.quadratic_probability(self.pairs, epsilon, self.norm)
        if self.name == _LINEAR:
            factor = bounds.lemma_factor
            return bounds.linear_probability(self.pairs, epsilon, factor)
        return bounds.theorem_2_probability(self.pairs, epsilon, self.norm)


_QUADRATIC = "Lemma 2 (i)"
_LINEAR = "Lemma 2 (ii)"


def _pair_statements(
    deviations: _PairDeviations, s: int, norm: float
) -> list[_PairStatement]:
    """Return the statements about deviations of s pairs; `norm` is ||Sigma_N||."""
    return [
        _PairStatement(_QUADRATIC, s, deviations.quadratic, norm),
        _PairStatement(_LINEAR, s, deviations.linear, norm),
        _PairStatement("Theorem 2", s, deviations.theorem_2, norm),
    ]


def _compare(
    statement: str,
    n: int,
    s: float,
    values: NDArray | list[float],
    delta: float,
    stated: dict[str, float],  # by version of the bounds
) -> Iterator[_Row]:
    """Yield the quantile of deviations at 1 - delta, and the stated eps."""
    measured = {"measured": float(np.quantile(values, 1 - delta))}
    for quantity, value in (measured | stated).items():
        yield _Row(
            what="deviation",
            statement=statement,
            rows=n,
            pairs=s,
            epsilon=np.nan,
            quantity=quantity,
            value=value,
        )


def _probabilities(
    statement: _PairStatement,
    n: int,
    delta: float,
    points: int,
    bounds: _BoundsByName,
) -> Iterator[_Row]:
    """Yield the share of draws whose deviation reaches epsilon, and its bounds."""
    # Epsilon goes from the median deviation to where the re-derived bound is `delta`.
    end = statement.epsilon(bounds["re-derived"], delta)
    epsilon = np.geomspace(np.median(statement.values), end, points)
    curves = {"measured": (statement.values >= epsilon[:, np.newaxis]).mean(axis=1)}
    for name, b in bounds.items():
        curves[name] = statement.probability(b, epsilon)
    yield from _curves(statement.name, n, statement.pairs, epsilon, curves)


def _curves(
    statement: str, n: float, s: float, epsilon: NDArray, curves: dict[str, NDArray]
) -> Iterator[_Row]:
    """Yield the probability at each epsilon, at most 1, curve by curve."""
    for quantity, values in curves.items():
        for eps, value in zip(epsilon, np.minimum(values, 1), strict=True):
            yield _Row(
                what="probability",
                statement=statement,
                rows=n,
                pairs=s,
                epsilon=float(eps),
                quantity=quantity,
                value=float(value),
            )


def _coins(s: int, points: int, radius: float) -> Iterator[_Row]:
    """Yield P(2 W |mu_S| >= eps) of a sample of coins, and its bounds by Lemma 2 (ii).

    Here mu_N is 0, and S mu_S is the sum of 2 S coins, 1 (heads) or -1. S + h heads
    have the sum 2 h.
    """
    from scipy.stats import binom

    # The standard deviation of h is sqrt(S / 2): h goes from 0.7 to 7 times this.
    h = np.unique(np.linspace(math.sqrt(s) / 2, 5 * math.sqrt(s), points).astype(int))
    epsilon = 4 * radius * h / s  # 2 W (2 h) / S
    exact = 2 * binom.sf(s + h - 1, 2 * s, 0.5)  # twice P(heads >= S + h), by symmetry
    curves = {"measured": exact}
    statement = "Lemma 2 (ii), coins"
    for name, b in bounds_of(radius, n_features=1).items():
        curves[name] = b.linear_probability(s, epsilon, b.lemma_factor)
        ratio = float(np.max(exact / curves[name]))
        yield _Row(
            what="largest ratio",
            statement=statement,
            rows=np.nan,
            pairs=s,
            epsilon=np.nan,
            quantity=name,
            value=ratio,
        )
    yield from _curves(statement, np.nan, s, epsilon, curves)
