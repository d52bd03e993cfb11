"""ART: a forest taught on the losses of known members."""

import torch
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
from art.estimators.classification.pytorch import PyTorchClassifier
from given import X_in, X_out, network, y_in, y_out

classifier = PyTorchClassifier(
    network, loss=torch.nn.CrossEntropyLoss(), input_shape=(X_in.shape[1],), nb_classes=2
)
attack = MembershipInferenceBlackBox(classifier, attack_model_type="rf", input_type="loss")
n_in, n_out = len(X_in) // 2, len(X_out) // 2
attack.fit(X_in[:n_in], y_in[:n_in], X_out[:n_out], y_out[:n_out])
members = attack.infer(X_in[n_in:], y_in[n_in:], probabilities=True)
others = attack.infer(X_out[n_out:], y_out[n_out:], probabilities=True)
# what is compared
scores = [*members.ravel(), *others.ravel()]
membership = [True] * len(members) + [False] * len(others)
