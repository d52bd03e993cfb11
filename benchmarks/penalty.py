"""A penalty on leakage against plain L2: who leaks less at equal test loss, by retraining.

usage: python benchmarks/penalty.py [--n 100] [--records 12] [--draws 300] [--seeds 6] [--family F]

Adult, five principal components of unit variance; ridge regression without an intercept, released
with noise of deviation 0.136 (30 in the units of Farokhi & Kaafar's figure 5), and logistic
regression with one, released with 0.3. For each seed: other records asked about, other training
sets, other test records. A base of n − 1 records is completed with the record or with another one
and the model is trained anew, penalty and all; leakage is ρ_KL of the Gaussians fitted to the
released models with and without the record, and loss and accuracy are those of released models.

At equal loss: ln ρ_KL of L2 is interpolated, on the side of its frontier where more L2 costs loss,
at the loss of the penalized model of the same seed; logistic regression is held against L2 with a
free and with a penalized intercept, whichever leaks less. Intervals are Student's over seeds, so
that they hold for other records too.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from _batched import penalized_minima
from leakscope import load_dataset
from leakscope.exact import ridge_leakage
from leakscope.metrics.gaussian import jeffreys
from leakscope.recipes.leakage_objective import LeakageObjective, logistic_loss, squared_loss
from leakscope.recipes.penalized import LeakagePenalizedLogistic, LeakagePenalizedRidge

NOISE = {"ridge": 0.136, "logistic": 0.3}
TEST, BATCH, GROUPS = 2000, 500, 20


@dataclass(frozen=True)
class Setting:
    """One way to train: L2, whether it holds for the intercept, and the penalty on leakage."""

    l2: float
    weight: float = 0.0
    power: float = 1.0
    whole: bool = False

    def __str__(self) -> str:
        if self.weight == 0:
            return f"L2 {self.l2:g}" + (", intercept too" if self.whole else "")
        return f"penalty {self.weight:g}, power {self.power:g}, L2 {self.l2:g}"


SETTINGS = {
    "ridge": [
        *(Setting(l2) for l2 in (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0)),
        Setting(0.1, 10.0),
        *(Setting(0.3, weight) for weight in (3.0, 10.0, 30.0)),
        Setting(0.3, 0.3, power=8.0),
    ],
    "logistic": [
        *(Setting(l2) for l2 in (0.001, 0.003, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.3)),
        *(Setting(l2, whole=True) for l2 in (0.001, 0.003, 0.01, 0.02, 0.03, 0.06, 0.1)),
        *(Setting(0.01, weight) for weight in (3.0, 10.0, 30.0)),
        Setting(0.01, 0.3, power=8.0),
    ],
}


@dataclass(frozen=True)
class Measured:
    """One setting under one seed; error: of the mean rho by finite draws, as a share."""

    loss: float
    accuracy: float
    mean: float
    largest: float
    error: float
    unfinished: int


@dataclass(frozen=True)
class Draw:
    """What a seed decides: test records, those asked about, training sets (draws, n), noise."""

    family: str
    X: np.ndarray
    y: np.ndarray
    test: np.ndarray
    asked: np.ndarray
    sets: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, family: str, seed: int, options: argparse.Namespace) -> Draw:
        """The draw of a seed."""
        X, y = adult()
        if family == "logistic":
            X = np.column_stack([X, np.ones(len(X))])
        rng = np.random.default_rng([seed, 5])
        order = rng.permutation(len(X))
        test, asked, pool = np.split(order, [TEST, TEST + options.records])
        sets = np.stack([rng.choice(pool, options.n, replace=False) for _ in range(options.draws)])
        noise = NOISE[family] * rng.normal(size=(options.draws, X.shape[1]))
        return cls(family, X, y, test, asked, sets, noise)

    def objective(self, setting: Setting, rows: np.ndarray) -> LeakageObjective:
        """What the models of training sets (b, n) minimize."""
        l2 = np.full(self.X.shape[1], setting.l2)
        if self.family == "logistic" and not setting.whole:
            l2[-1] = 0.0
        loss = squared_loss if self.family == "ridge" else logistic_loss
        variance = NOISE[self.family] ** 2
        return LeakageObjective(
            self.X[rows], self.y[rows], loss, l2, setting.weight, variance, setting.power
        )

    def models(self, setting: Setting, sets: np.ndarray) -> tuple[np.ndarray, int]:
        """The models of these training sets, and how many searches did not end."""
        starts = range(0, len(sets), BATCH)
        parts = [
            penalized_minima(self.objective(setting, sets[start : start + BATCH]))
            for start in starts
        ]
        return np.concatenate([part for part, _ in parts]), sum(left for _, left in parts)

    def measured(self, setting: Setting) -> Measured:
        """Leakage of the records asked about, and utility, of released models."""
        without, unfinished = self.models(setting, self.sets)
        leakage = []
        for record in self.asked:
            sets = self.sets.copy()
            sets[:, -1] = record
            with_it, left = self.models(setting, sets)
            unfinished += left
            leakage.append(with_groups(with_it, without, NOISE[self.family] ** 2))
        rho = np.array(leakage)
        means = rho.mean(axis=0)
        error = math.sqrt((GROUPS - 1) * means[1:].var()) / means[0]
        loss, accuracy = self.utility(without + self.noise)
        return Measured(loss, accuracy, means[0], rho[:, 0].max(), error, unfinished)

    def utility(self, released: np.ndarray) -> tuple[float, float]:
        """Mean test loss and accuracy of released models (b, q)."""
        scores, truth = self.X[self.test] @ released.T, self.y[self.test, None]
        loss = squared_loss if self.family == "ridge" else logistic_loss
        half = 0.5 if self.family == "ridge" else 0.0
        losses = loss(scores, np.broadcast_to(truth, scores.shape))[0]
        return float(losses.mean()), float(((scores > half) == (truth > 0)).mean())


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Features (N, 5) of unit variance, labels (N,) of 0 and 1."""
    records = load_dataset("adult", encoding="pca", components=5)
    return np.asarray(records.X) * math.sqrt(len(records)), records.y.astype(np.float64)


def with_groups(with_it: np.ndarray, without: np.ndarray, variance: float) -> np.ndarray:
    """rho_kl from all draws, then without each of GROUPS groups of them."""
    fold = np.arange(len(without)) * GROUPS // len(without)
    noise = variance * np.eye(without.shape[1])
    values = []
    for group in range(-1, GROUPS):
        kept = fold != group
        sides = [side[kept] for side in (with_it, without)]
        gaussians = [part for s in sides for part in (s.mean(axis=0), np.cov(s.T) + noise)]
        values.append(float(jeffreys(*gaussians)))
    return np.array(values)


def run(family: str, seed: int, options: argparse.Namespace) -> tuple[str, list[Measured], float]:
    """The family, every setting of it under one seed, and the processor time that took."""
    start = time.process_time()
    with threadpool_limits(limits=1):
        draw = Draw.of(family, seed, options)
        found = [draw.measured(setting) for setting in SETTINGS[family]]
    return family, found, time.process_time() - start


def plain_at(loss: float, family: str, found: list[Measured], what: str) -> float:
    """ln of the leakage of plain L2 at this test loss, NaN where its frontier does not reach."""
    values = []
    for whole in (False, True):
        rows = [
            one
            for setting, one in zip(SETTINGS[family], found, strict=True)
            if setting.weight == 0 and setting.whole == whole
        ]
        if rows:
            rows = rows[int(np.argmin([row.loss for row in rows])) :]
            losses = [row.loss for row in rows]
            logs = [math.log(getattr(row, what)) for row in rows]
            values.append(float(np.interp(loss, losses, logs, left=np.nan, right=np.nan)))
    return math.nan if np.isnan(values).all() else float(np.nanmin(values))


def student(values: np.ndarray) -> tuple[float, float, float]:
    """The mean with its 95 % interval."""
    mean = float(values.mean())
    half = -stdtrit(len(values) - 1, 0.025) * values.std(ddof=1) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def show(family: str, found: list[list[Measured]]) -> None:
    """The frontier and the comparison at equal loss; found is by seed, then by setting."""
    print(f"\n{family}, noise {NOISE[family]}\n")
    print("| training | test loss | accuracy | mean rho_kl | largest of a seed | draws' error |")
    print("|---|---|---|---|---|---|")
    for place, setting in enumerate(SETTINGS[family]):
        rows = [one[place] for one in found]
        cells = [f"{np.mean([row.loss for row in rows]):.4f}"]
        cells += [f"{np.mean([row.accuracy for row in rows]):.4f}"]
        for what in ("mean", "largest"):
            logs = student(np.log([getattr(row, what) for row in rows]))
            value, low, high = (math.exp(log) for log in logs)
            cells += [f"{value:.5f} ({low:.5f} to {high:.5f})"]
        cells += [f"{np.mean([row.error for row in rows]):.1%}"]
        print(f"| {setting} | " + " | ".join(cells) + " |")
    print("\n| penalized | mean rho_kl over that of L2 at equal loss | largest | verdict |")
    print("|---|---|---|---|")
    for place, setting in enumerate(SETTINGS[family]):
        if setting.weight > 0:
            print(f"| {setting} | " + " | ".join(compared(family, found, place)) + " |")
    print(f"searches that did not end: {sum(one.unfinished for row in found for one in row)}")


def compared(family: str, found: list[list[Measured]], place: int) -> list[str]:
    """The cells of one penalized setting: ratios with intervals, and what the first says."""
    cells, verdict = [], ""
    for what in ("mean", "largest"):
        logs = np.array(
            [
                math.log(getattr(one[place], what)) - plain_at(one[place].loss, family, one, what)
                for one in found
            ]
        )
        logs = logs[np.isfinite(logs)]
        if len(logs) < 3:
            return [f"L2 has no model of that loss in {len(found) - len(logs)} seeds", "", ""]
        value, low, high = (math.exp(log) for log in student(logs))
        cells.append(f"{value:.2f} ({low:.2f} to {high:.2f}; {len(logs)} seeds)")
        if not verdict:
            verdict = "leaks less" if high < 1 else "leaks more" if low > 1 else "undecided"
    return [*cells, verdict]


def check(options: argparse.Namespace) -> bool:
    """Whether batches agree with the estimators, and refitting with ridge_leakage."""
    right = True
    for family, maker in (("ridge", LeakagePenalizedRidge), ("logistic", LeakagePenalizedLogistic)):
        draw, setting = Draw.of(family, 0, options), Setting(0.03, 10.0)
        models, _ = draw.models(setting, draw.sets[:10])
        p = 5
        for rows, theta in zip(draw.sets, models, strict=False):
            model = maker(0.03, 10.0, NOISE[family], fit_intercept=family == "logistic")
            model.fit(draw.X[rows, :p], draw.y[rows])
            own = np.append(np.ravel(model.coef_), model.intercept_)[: len(theta)]
            right &= bool(np.allclose(own, theta, atol=1e-4))
    draw = Draw.of("ridge", 0, options)
    exact = ridge_leakage(
        draw.X, draw.y, options.n, 0.1, NOISE["ridge"], draws=5000, records=draw.asked
    )
    refitted = draw.measured(Setting(0.1)).mean
    print(f"plain ridge: refitted {refitted:.5f}, ridge_leakage {exact.mean.value:.5f}")
    return right and abs(math.log(refitted / exact.mean.value)) < 0.15


def main() -> int:
    """Print the tables; 0 if the checks hold, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="records that train a model")
    parser.add_argument("--records", type=int, default=12, help="asked about, for each seed")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--family", choices=list(SETTINGS), help="one of them only")
    options = parser.parse_args()
    start = time.perf_counter()
    right = check(options)
    print(f"batches agree with the estimators, refitting with ridge_leakage: {right}")
    families = [options.family] if options.family else list(SETTINGS)
    runs = Parallel(n_jobs=-1)(
        delayed(run)(family, seed, options) for family in families for seed in range(options.seeds)
    )
    for family in families:
        show(family, [found for name, found, _ in runs if name == family])
    busy = sum(seconds for _, _, seconds in runs)
    print(f"\n{time.perf_counter() - start:.0f} s, {busy:.0f} s of processor time")
    return int(not right)


if __name__ == "__main__":
    raise SystemExit(main())
