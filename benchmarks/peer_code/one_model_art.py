"""ART: a forest taught on the predictions of known members, as in its notebook."""

from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
from art.estimators.classification.scikitlearn import ScikitlearnRandomForestClassifier
from given import X_in, X_out, model, y_in, y_out

classifier = ScikitlearnRandomForestClassifier(model)
attack = MembershipInferenceBlackBox(classifier, attack_model_type="rf")
n_in, n_out = len(X_in) // 2, len(X_out) // 2
attack.fit(X_in[:n_in], y_in[:n_in], X_out[:n_out], y_out[:n_out])
members = attack.infer(X_in[n_in:], y_in[n_in:], probabilities=True)
others = attack.infer(X_out[n_out:], y_out[n_out:], probabilities=True)
# what is compared
scores = [*members.ravel(), *others.ravel()]
membership = [True] * len(members) + [False] * len(others)
