"""pyDVL: leave-one-out values, the utility being minus the log-loss on the held-out records."""

from given import X_in, X_out, y_in, y_out
from pydvl.valuation import Dataset, LOOValuation, ModelUtility, SupervisedScorer
from sklearn.linear_model import LogisticRegression

estimator = LogisticRegression(solver="newton-cholesky", tol=1e-10)
train, test = Dataset(X_in, y_in), Dataset(X_out, y_out)
scorer = SupervisedScorer("neg_log_loss", test, default=0.0)
valuation = LOOValuation(ModelUtility(estimator, scorer)).fit(train)
# what is compared
values = valuation.result.values
